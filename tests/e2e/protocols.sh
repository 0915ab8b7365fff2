#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Aggregation protocols as algorithms: in virtual time without loss and with, in real time; keys of a conf; what is refused by name.
# load: any
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

protocols=$(trib sim --help | tr -s ' \n' ' ' | grep -oE '(switchml|ps|atp)(, |$)' | tr -d ', ' | sort -u)
[ -n "$protocols" ] || fail "no protocol is listed by --help"
echo 'faults = ( { link = "all"; loss = "0.5%"; dup = "0.5%"; reorder = "0.5%"; } );' > "$tmp/loss.conf"

# Rows of a report: the algorithm, no wrong element, and a time.
right() { # FILE ALGORITHM ROWS
    python3 - "$@" <<'PY' || fail "rows of $2 in $(basename "$1")"
import json, sys
rows = [r for r in json.load(open(sys.argv[1]))["results"] if r["algo"] == sys.argv[2]]
bad = [r for r in rows if r["wrong"] != 0 or r["asked"] != sys.argv[2] or r["time_us"] <= 0 or "protocol" not in r]
if bad or len(rows) != int(sys.argv[3]):
    sys.exit(f"{len(rows)} rows, bad: {bad[:1]}")
PY
}

for p in $protocols; do
    for c in single-switch-4 leaf-spine-8; do
        trib sim "$conf/$c.conf" --algo "$p" -d int32,float -b 4K -e 1M -J "$tmp/$p.json" > "$tmp/$p.out" 2>&1 || fail "$p on $c"
        right "$tmp/$p.json" "$p" 20
        trib sim "$conf/$c.conf" --algo "$p" -d int32 -b 4K -e 256K -f 8 --faults "$tmp/loss.conf" -J "$tmp/$p.json" > "$tmp/$p.out" 2>&1 ||
            fail "$p on $c with loss"
        right "$tmp/$p.json" "$p" 6
    done
    # The same twice is the same.
    for i in 1 2; do
        trib sim "$conf/single-switch-4.conf" --algo "$p" -d int32 -b 64K -e 64K --faults "$tmp/loss.conf" 2> /dev/null > "$tmp/same.$i" || fail "$p again"
    done
    cmp "$tmp/same.1" "$tmp/same.2" || fail "$p: two runs of one seed differ"
    trib perf "$conf/single-switch-4.conf" --algo "$p" -d int32 -b 16K -e 16K -n 2 --max-wall 60 -J "$tmp/$p.json" > "$tmp/$p.out" 2>&1 || fail "$p in real time"
    right "$tmp/$p.json" "$p" 2
    # Faults, other tenants, deaths: exact, within the bound, or a named error, and no slot is left.
    trib sim --chaos 1-40 --algo "$p" > "$tmp/$p.out" 2>&1 || fail "chaos by $p: $(grep -m 1 FAILED "$tmp/$p.out")"
    has '^40 seeds, 0 failed' "$tmp/$p.out"
done
trib sim --chaos 1 --algo ring > "$tmp/chaos.out" 2>&1 && fail "chaos by an algorithm that is no protocol"
has 'found ring, expected with --chaos the name of one protocol' "$tmp/chaos.out"
trib sim --chaos 9-7 > "$tmp/chaos.out" 2>&1 && fail "chaos from the last seed to the first"
has 'found "9-7", a range that runs backwards, expected a seed, or FIRST-LAST' "$tmp/chaos.out"

# ATP sums floats in switches, unless they are beyond its fixed point: then the row says so.
for scale in 1000000 1000000000; do
    sed "s/reduce = {/reduce = { protocol = \"atp\"; scale = $scale;/; s/window = 256;//" "$conf/leaf-spine-8.conf" > "$tmp/scale.conf"
    trib sim "$tmp/scale.conf" --algo atp -b 64K -e 64K -n 1 --place out -J "$tmp/scale.json" > "$tmp/scale.$scale" 2>&1 || fail "atp, scale $scale"
    python3 - "$tmp/scale.json" "$scale" <<'PY' || fail "atp, scale $scale"
import json, sys
p = json.load(open(sys.argv[1]))["results"][0]["protocol"]
fits = sys.argv[2] == "1000000"
sys.exit(0 if (p["overflows"] == 0 and p["switch_sums"] > 90) == fits and (p["switch_sums"] == 0) != fits else str(p))
PY
done
grep 'switches have' "$tmp/scale.1000000" && fail "atp is said to sum not everything"
has 'atp, out-of-place: switches have summed nothing' "$tmp/scale.1000000000"
has '512 parts had a number beyond what the key scale can send, and went on as floats' "$tmp/scale.1000000000"

# The formula of the parameter server, also where links between switches are the bottleneck.
for c in leaf-spine-8 leaf-spine-64; do
    for v in 0 4; do
        sed "s/reduce = {/reduce = { protocol = \"ps\"; servers = $v;/; s/window = 256;//" "$conf/$c.conf" > "$tmp/model.conf"
        trib sim "$tmp/model.conf" --algo ps -d int32 -b 4K -e 1M -f 16 --place out -n 1 -w 0 -J "$tmp/model.json" > "$tmp/model.out" 2>&1 || fail "ps on $c"
        python3 - "$tmp/model.json" <<'PY' || fail "ps on $c, $v servers, against its formula"
import json, sys
far = [(r["size_bytes"], r["time_us"], r["predicted_us"]) for r in json.load(open(sys.argv[1]))["results"]
       if abs(r["time_us"] / r["predicted_us"] - 1) > 0.1]
sys.exit(f"{far}" if far else 0)
PY
    done
done

# One table, of every algorithm and loss.
"$(dirname "$0")/../../scripts/compare_protocols" "$conf/single-switch-4.conf" -b 4K -e 4K --loss 0,1 -n 1 -J "$tmp/table.json" > "$tmp/table.out" ||
    fail "compare_protocols"
has '^# 10 rows, 0 wrong' "$tmp/table.out"

trib sim "$conf/single-switch-4.conf" --algo switchml -d int32 -b 4K -e 4K --counters --wide > "$tmp/counters.out" 2>&1 || fail "--counters"
has '^# protocol: .*switch_packets 16,' "$tmp/counters.out"

# A refusal and an abort in the middle: the policy's next algorithm goes on, in both clocks; without a policy they are errors.
fell() { # TEXT FILE: every row is by another algorithm, and right
    has "fell back, .*$1" "$2"
    has '^# Out of bounds values : 0 OK' "$2"
    python3 - "$tmp/fell.json" <<'PY' || fail "rows of $2"
import json, sys
rows = json.load(open(sys.argv[1]))["results"]
sys.exit(not rows or any(r["wrong"] or r["asked"] not in ("switchml", "atp") or r["aggregated_iters"] or not r["fell_back"] for r in rows))
PY
}
echo 'faults = ( { at = "20us"; node = "leaf1"; restart = "5us"; } );' > "$tmp/restart.conf"
for c in single-switch-4 leaf-spine-8; do
    sed 's/reduce = {/reduce = { memory = 65536;/' "$conf/$c.conf" > "$tmp/little-$c.conf"
done
for p in switchml atp; do
    trib sim "$tmp/little-leaf-spine-8.conf" --algo $p --policy $p,ring -d int32,float -b 64K -e 64K -J "$tmp/fell.json" --wide > "$tmp/fell.out" 2>&1 || fail "$p refused"
    fell "protocol $p refused by leaf0: .* wants [0-9]* bytes, 65536 of 65536" "$tmp/fell.out"
    trib sim "$conf/leaf-spine-8.conf" --algo $p --policy $p,ring -d int32,float -b 1M -e 1M --faults "$tmp/restart.conf" -J "$tmp/fell.json" --wide > "$tmp/fell.out" 2>&1 ||
        fail "$p of a switch that restarts"
    fell "protocol $p: .*leaf1.*\\(the communicator's operation [0-9]* starts over\\)" "$tmp/fell.out"
done
trib sim "$tmp/little-leaf-spine-8.conf" --algo switchml -b 64K -e 64K > "$tmp/fell.out" 2>&1 && fail "refused, without a policy"
has 'trib-sim: rank [0-9]*: protocol switchml refused by leaf0' "$tmp/fell.out"
trib perf "$tmp/little-single-switch-4.conf" --algo switchml --policy switchml,ring -d int32 -b 16K -e 16K -n 2 --max-wall 60 -J "$tmp/fell.json" --wide > "$tmp/fell.out" 2>&1 ||
    fail "refused in real time"
fell 'protocol switchml refused by switch0' "$tmp/fell.out"

# In the middle of a run in real time: a spine link goes down, and ring goes on by the other spine.
trib up "$conf/leaf-spine-8.conf" > "$tmp/up.out" 2>&1 || fail "no fabric"
TRIB_RUN=$run/leaf-spine-8 "$TRIB_BUILD/trib-perf" "$conf/leaf-spine-8.conf" --algo switchml --policy switchml,ring -d int32 -b 64K -e 64K -n 2000 -w 0 \
    --max-wall 15 --wide > "$tmp/down.out" 2>&1 &
perf=$!
busy() { [ "$(total rx_frames)" -gt 5000 ]; }
until_true 30 busy || fail "the run did not get under way"
trib link leaf1-spine0 down > "$tmp/link.out" 2>&1 || fail "the link does not go down"
wait $perf
has 'fell back, [a-z-]*place, from operation [0-9]+ of .*protocol switchml: aborted by leaf[01]: .*link to (spine0|leaf1) is down' "$tmp/down.out"
has '^# Out of bounds values : 0 OK' "$tmp/down.out"
trib down > "$tmp/up.out" 2>&1 || fail "down"

# Not among the usual ones.
trib sim "$conf/single-switch-4.conf" --algo all -b 4K -e 4K > "$tmp/all.out" 2>&1 || fail "all"
has_not 'Algorithm: (switchml|ps|atp)' "$tmp/all.out"

refused() { # TEXT ARGUMENTS: of trib sim
    local text=$1
    shift
    trib sim "$@" > "$tmp/refused.out" 2>&1 && fail "not refused: $*"
    has "$text" "$tmp/refused.out"
}
refused 'found switchml for prod of float, expected sum of int32' "$conf/leaf-spine-8.conf" --algo switchml -o prod
refused "found switchml, which broadcast does not have" "$conf/leaf-spine-8.conf" broadcast --algo switchml
refused 'found none, expected data' "$conf/leaf-spine-8.conf" --algo switchml --payload none
refused 'did you mean switchml' "$conf/leaf-spine-8.conf" --algo switchmk

# Mistakes of a conf are told before an option that names a protocol of it.
sed 's/reduce = {/reduce = { protocol = ".\/none.so"; packet = 0.5;/' "$conf/single-switch-4.conf" > "$tmp/wrong.conf"
refused 'wrong.conf:[0-9]+: packet: found 0.5, expected an integer' "$tmp/wrong.conf" --algo mine
sed 's/reduce = {/reduce = { protocol = ".\/none.so";/' "$conf/single-switch-4.conf" > "$tmp/wrong.conf"
refused 'wrong.conf:[0-9]+: protocol: ./none.so: cannot open' "$tmp/wrong.conf" --algo mine

# Files that are no shared object, each by what it is.
mkdir "$tmp/folder.so"
mkfifo "$tmp/fifo.so"
: > "$tmp/empty.so"
echo 'a text of more than sixty-four bytes, which is what the head of an ELF file has' > "$tmp/text.so"
head -c 64 "$TRIB_BUILD/libtribverbs.so" > "$tmp/other.so"
cp "$tmp/other.so" "$tmp/cut.so"
printf '\377' | dd of="$tmp/other.so" bs=1 seek=18 conv=notrunc 2> /dev/null
for pair in folder:'found a directory' fifo:'found a FIFO' empty:'found an empty file' text:'found a file that is no ELF object' other:'found one of another machine' cut:'cannot read|too short'; do
    sed "s/reduce = {/reduce = { protocol = \".\/${pair%%:*}.so\";/" "$conf/single-switch-4.conf" > "$tmp/wrong.conf"
    refused "wrong.conf:[0-9]+: protocol: .*${pair%%:*}.so: .*(${pair#*:})" "$tmp/wrong.conf" --algo mine
done

# ATP's formula, from 64 KiB on: within a tenth, with servers on all ranks and on one. Blocks that wait for a gap make it longer.
for conf8 in single-switch-4:0 leaf-spine-8:0 leaf-spine-8:1; do
    sed "s/reduce = {/reduce = { protocol = \"atp\"; servers = ${conf8#*:};/" "$conf/${conf8%:*}.conf" > "$tmp/formula.conf"
    trib sim "$tmp/formula.conf" --algo atp -d int32 -b 64K -e 1M -f 4 -n 2 --place out -J "$tmp/formula.json" > "$tmp/formula.out" 2>&1 || fail "atp on $conf8"
    python3 - "$tmp/formula.json" <<'PY' || fail "atp on $conf8: $(cat "$tmp/formula.out")"
import json, sys
rows = json.load(open(sys.argv[1]))["results"]
alone = [r for r in rows if not r["protocol"]["resent"]]
sys.exit(len(alone) < 2 or any(r["time_us"] < 0.9 * r["predicted_us"] for r in rows) or any(r["time_us"] > 1.1 * r["predicted_us"] for r in alone))
PY
done

# Keys that do not fit the job.
for p in ps atp; do
    sed "s/reduce = {/reduce = { protocol = \"$p\"; servers = 9;/" "$conf/leaf-spine-8.conf" > "$tmp/wrong.conf"
    refused "protocol $p does not start: servers: found 9, expected at most the number of ranks, 8" "$tmp/wrong.conf" --algo $p
done
sed 's/reduce = {/reduce = { protocol = "ps"; packet = 5;/' "$conf/leaf-spine-8.conf" > "$tmp/wrong.conf"
refused 'protocol ps does not start: packet: found 5, expected 0 or at least 8' "$tmp/wrong.conf" --algo ps

# Protocols that end the process, or stop its time: which, and in which function.
plugin() { # NAME FUNCTION CODE: tally, with a timer() of its own, and with this code at the beginning of that function
    sed -e '/^static const struct trib_rank_half/i static void rank_timer(struct trib_rank *r)\n{\n    trib_window_timer(r);\n}' -e 's/= trib_window_timer/= rank_timer/' \
        "$(dirname "$0")/../../examples/protocol/tally.c" | sed "/^static void $2(/ { n; s/{/{ $3/ }" > "$tmp/$1.c"
    # Calls itself without end, and not as a jump.
    sed -i '1i #include <stdlib.h>\nstatic int deep(volatile char *p) { volatile char a[4096]; a[0] = *p; return deep(a) + a[1]; }' "$tmp/$1.c"
    ${CC:-cc} -w -O0 -shared -fPIC -I"$(dirname "$0")/../../include" "$tmp/$1.c" -o "$tmp/$1.so" || fail "$1.c"
    sed "s/^reduce = .*/reduce = { protocol = \".\/$1.so\"; };/" "$conf/single-switch-4.conf" > "$tmp/$1.conf"
}
ends() { # CODE TEXT NAME
    "$TRIB_BUILD/trib-sim" "$tmp/$3.conf" --algo tally -d int32 -b 4K -e 64K --faults "$tmp/loss.conf" > "$tmp/ends.out" 2>&1
    [ $? = "$1" ] || fail "$3: another code than $1"
    has "^trib-sim: .*protocol tally: $2" "$tmp/ends.out"
}
ulimit -c 0
plugin exit sw_packet 'exit(0);'
ends 1 'packet\(\) of its switch half called exit\(\)' exit
plugin null rank_packet '*(volatile int *)0 = 1;'
ends 139 'packet\(\) of its rank half ended by SIGSEGV' null
plugin abort sw_packet 'abort();'
ends 134 'packet\(\) of its switch half ended by SIGABRT' abort
plugin deep sw_packet 'char q = 1; deep(\&q);'
ends 139 'packet\(\) of its switch half ended by SIGSEGV' deep
plugin now rank_timer 'r->api->timer(r, r->api->now(r)); return;'
ends 1 'timer\(\) of its rank half has run 100000 times in a microsecond: it sets its timer again for now' now
trib perf "$tmp/null.conf" --algo tally -d int32 -b 4K -e 4K -n 1 --max-wall 20 > "$tmp/ends.out" 2>&1 && fail "a rank that its protocol ends"
has 'protocol tally: packet\(\) of its rank half ended by SIGSEGV' "$tmp/ends.out"

# A protocol that does not return: the second signal ends the simulation.
sed '/^static void sw_packet/ { n; s/{/{\n    for (;;)\n        __asm__("");/ }' "$(dirname "$0")/../../examples/protocol/tally.c" > "$tmp/loop.c"
grep -q 'for (;;)' "$tmp/loop.c" || fail "tally has no sw_packet() any more"
${CC:-cc} -w -shared -fPIC -I"$(dirname "$0")/../../include" "$tmp/loop.c" -o "$tmp/loop.so" || fail "a protocol that does not return"
sed 's/^reduce = .*/reduce = { protocol = ".\/loop.so"; };/' "$conf/single-switch-4.conf" > "$tmp/loop.conf"
"$TRIB_BUILD/trib-sim" "$tmp/loop.conf" --algo tally -d int32 -b 4K -e 4K > "$tmp/loop.out" 2>&1 &
loops=$!
sleep 2
kill -TERM $loops
sleep 1
kill -0 $loops 2>/dev/null || fail "the protocol did return"
kill -TERM $loops
gone() { ! kill -0 $loops; }
until_true 5 gone || { kill -KILL $loops; fail "the second signal did not end it"; }

# Keys of the conf reach the ranks and the switches: 64 elements a packet instead of 256.
sed 's/reduce = {/reduce = { protocol = "switchml"; packet = 64;/' "$conf/single-switch-4.conf" > "$tmp/short.conf"
trib sim "$tmp/short.conf" --algo switchml -d int32 -b 256K -e 256K -J "$tmp/short.json" > "$tmp/short.out" 2>&1 || fail "short packets"
right "$tmp/short.json" switchml 2
python3 - "$tmp/short.json" <<'PY' || fail "four ranks of 1,024 packets were asked for"
import json, sys
sys.exit(json.load(open(sys.argv[1]))["results"][0]["protocol"]["switch_packets"] != 4096)
PY
echo "protocols: $(echo $protocols)"
