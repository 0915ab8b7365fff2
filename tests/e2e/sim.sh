#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Virtual time: trib sim runs the rows of trib perf on a conf of which nothing is up, exactly, within 1 % of the model, the same to
# the byte each time, with data and without; and what it refuses.
# clock: virtual
. "$(dirname "$0")/lib.sh"

sim() { trib sim "$@" 2>"$tmp/sim.err"; }
refuses() { # refuses CODE TEXT ARG...
    local code=$1 text=$2
    shift 2
    trib sim "$@" >"$tmp/refuse.out" 2>&1
    local rc=$?
    [ $rc = "$code" ] || fail "trib sim $*: exit code $rc, expected $code"
    has "$text" "$tmp/refuse.out"
}

# exact FILE ROWS: so many rows, each right in both places
exact() {
    awk -v want="$2" '$1 ~ /^[0-9]+$/ && NF == 11 { n[$6]++; if ($10 != 0) bad++ }
        END { exit !(n["out"] == want && n["in"] == want && !bad) }' "$1" || fail "expected $2 rows without wrong elements:"$'\n'"$(cat "$1")"
}
# near FILE LOW HIGH: all rows, measured over model
near() {
    awk -v low="$2" -v high="$3" '$1 ~ /^[0-9]+$/ && NF == 11 { n++; if ($11 < low || $11 > high) bad++ }
        END { exit !(n && !bad) }' "$1" || fail "measured/model beyond $2..$3:"$'\n'"$(cat "$1")"
}

# leaf-spine, ring and SHARP, 4 KiB to 16 MiB
sim leaf-spine-8.conf all_reduce -J "$tmp/a.json" >"$tmp/a.out" || fail "leaf-spine: $(cat "$tmp/sim.err")"
exact "$tmp/a.out" 14
near "$tmp/a.out" 0.99 1.01
has '^# virtual time, seed 1, data' "$tmp/a.out"
has '^# trib-sim [0-9.]+ all_reduce on leaf-spine-8' "$tmp/a.out"
has 'Out of bounds values : 0 OK' "$tmp/a.out"
has '^trib-sim: [0-9.]+ ms simulated in .* events .* frames on links' "$tmp/sim.err"
[ -e "$run" ] && fail "virtual time started something"

# the GPUs of a node
sim h100-node.conf all_reduce --algo ring -b 64K -e 16M >"$tmp/n.out" || fail "h100-node: $(cat "$tmp/sim.err")"
exact "$tmp/n.out" 5
near "$tmp/n.out" 0.99 1.01
# fewer elements than planes times ranks: some ways carry nothing
for c in h100-node rail-2x4; do
    sim $c.conf all_reduce --algo halving,auto -b 8 -e 128 >"$tmp/n.out" || fail "$c, few elements: $(cat "$tmp/sim.err")"
    exact "$tmp/n.out" 6
    sim $c.conf all_gather --algo halving -b 32 -e 128 >"$tmp/n.out" || fail "$c, few elements: $(cat "$tmp/sim.err")"
    exact "$tmp/n.out" 2
done
sim h100-node.conf all_reduce --algo nvls -b 1M -e 1M --mm-self >"$tmp/n.out" || fail "--mm-self: $(cat "$tmp/sim.err")"
exact "$tmp/n.out" 1
has 'own share crosses' "$tmp/n.out"

# again, and without data: not one frame at another time
sim leaf-spine-8.conf all_reduce -b 64K -e 1M -J "$tmp/1.json" >"$tmp/1.out" || fail "first"
sim leaf-spine-8.conf all_reduce -b 64K -e 1M -J "$tmp/2.json" >"$tmp/2.out" || fail "second"
cmp "$tmp/1.json" "$tmp/2.json" || fail "two runs differ"
cmp "$tmp/1.out" "$tmp/2.out" || fail "two runs print different tables"
for conf_algo in 'leaf-spine-8.conf ring,sharp,tree,halving' 'rail-2x4.conf ring,hier_sharp' 'h100-node.conf nvls'; do
    # without the runs that only checks need, so that both are the same from beginning to end
    set -- $conf_algo
    sim "$1" --algo "$2" -b 4K -e 256K -c 0 -J "$tmp/d.json" >"$tmp/d.out" || fail "$1 with data: $(cat "$tmp/sim.err")"
    sim "$1" --algo "$2" -b 4K -e 256K --payload none -J "$tmp/l.json" >"$tmp/l.out" || fail "$1 without: $(cat "$tmp/sim.err")"
    cmp <(jq 'del(.run, .virtual.payload)' "$tmp/d.json") <(jq 'del(.run, .virtual.payload)' "$tmp/l.json") || fail "$1: times differ with data and without"
done
has '"trace": "[0-9a-f]{16}"' "$tmp/d.json"

# faults come from the seed
sed 's/^name *=.*/name = "lossy";/; s/host_link *= *{/&  loss = 0.001; /' "$conf/leaf-spine-8.conf" >"$tmp/lossy.conf"
has 'loss' "$tmp/lossy.conf"
for s in 1 1 2; do
    sim "$tmp/lossy.conf" --algo ring,sharp -b 256K -e 256K -n 3 --seed $s -J "$tmp/s.json" >"$tmp/s.out" || fail "lossy, seed $s: $(cat "$tmp/sim.err")"
    exact "$tmp/s.out" 2
    grep '"trace"' "$tmp/s.json" >>"$tmp/traces"
done
[ "$(sed -n 1p "$tmp/traces")" = "$(sed -n 2p "$tmp/traces")" ] || fail "the same seed gave two runs: $(cat "$tmp/traces")"
[ "$(sed -n 1p "$tmp/traces")" != "$(sed -n 3p "$tmp/traces")" ] || fail "two seeds gave one run"

# a fault plan: the cable that goes down costs SHARP its tree, and nobody a result; who dies is named
sim leaf-spine-8.conf -b 256K -e 256K -n 10 --seed 2 --faults "$conf/faults/flap.conf" >"$tmp/f.out" || fail "flap: $(cat "$tmp/sim.err")"
exact "$tmp/f.out" 2
has 'fell back, .*: (aborted by|leaf|spine)' "$tmp/f.out"
cat >"$tmp/die.conf" <<'END'
faults = ( { at = "20us"; host = "h3"; die = true; told = "100us"; } );
END
trib sim leaf-spine-8.conf -b 4M -e 4M --algo ring --faults "$tmp/die.conf" >"$tmp/f.out" 2>"$tmp/f.err"
[ $? = 1 ] || fail "a job that lost a rank: expected exit code 1"
has 'rank 3 \(h3\) has died' "$tmp/f.err"
# a switch that restarts: exact by the next algorithm, and rows from then on have the model of what ran
cat >"$tmp/restart.conf" <<'END'
faults = ( { at = "20us"; node = "leaf1"; restart = "1us"; } );
END
sim rail-2x4.conf -b 64K -e 1M -f 16 --policy hier_sharp,ring --faults "$tmp/restart.conf" -J "$tmp/fall.json" >"$tmp/f.out" || fail "restart: $(cat "$tmp/sim.err")"
exact "$tmp/f.out" 2
has '"fell_back": ".*leaf1 no longer knows the group' "$tmp/fall.json"
sim rail-2x4.conf -b 1M -e 1M --algo ring -J "$tmp/ring.json" >/dev/null || fail "ring"
sim rail-2x4.conf -b 64K -e 64K --algo hier_sharp -J "$tmp/hier.json" >/dev/null || fail "hier_sharp"
predicted() { grep -oE '"(size_bytes|predicted_us)": [0-9.]+' "$1" | paste - - | sort -u; }
[ "$(predicted "$tmp/fall.json")" = "$(sort -u <(predicted "$tmp/ring.json") <(predicted "$tmp/hier.json"))" ] ||
    fail "the model of what ran: $(predicted "$tmp/fall.json")"
refuses 2 "no fault plan 'nowhere'" leaf-spine-8.conf --faults nowhere
refuses 2 'link: found "leaf0-spine7", expected a link' leaf-spine-8.conf --faults <(echo 'faults = ({ link = "leaf0-spine7"; down = true; });')

# a flow beside the rows, and what congestion cost: neither changes from run to run
beside() {
    trib sim incast-32.conf gather -g 33 -b 8M -e 8M -w 0 --payload none --background-flow h39:h1 -J "$1" >"$2" 2>/dev/null || fail "--background-flow"
}
beside "$tmp/b1.json" "$tmp/b1.out"
beside "$tmp/b2.json" "$tmp/b2.out"
cmp -s "$tmp/b1.out" "$tmp/b2.out" && cmp -s "$tmp/b1.json" "$tmp/b2.json" || fail "--background-flow: two runs differ"
has '^# Beside it h39 sends to h1: 49\.[0-9]+ GB/s alone' "$tmp/b1.out"
has 'direct, [0-9]+ B, float, out-of-place: [0-9.]+ GB/s, 0\.[0-9]+ of that' "$tmp/b1.out"
has '^# Congestion: 0 frames marked, .*[1-9][0-9]* pauses, ' "$tmp/b1.out"
has '"dropped_full": 0,' "$tmp/b1.json"
has '"retransmits": 0,' "$tmp/b1.json"
has '"congestion": \{' "$tmp/b1.json"
has '"alone_GBps": 49' "$tmp/b1.json"
refuses 2 '--background-flow: found "h0:h99", expected two hosts' leaf-spine-8.conf --background-flow h0:h99
refuses 2 '--background-flow: found "h0", expected two hosts' leaf-spine-8.conf --beside h0
refuses 2 '--background-flow: found "h1:h1", expected two hosts' leaf-spine-8.conf --background-flow h1:h1

# chaos: a seed draws its plan, and given back as a file that is the same run; a fabric of one's own; several seeds
sim --chaos 2 >"$tmp/c.out" || fail "chaos: $(cat "$tmp/c.out" "$tmp/sim.err")"
has '^seed 2: .*: (exact|named errors on)' "$tmp/c.out"
sed -n '/^faults/,$p' "$tmp/c.out" >"$tmp/c.conf"
sim --chaos 2 --faults "$tmp/c.conf" >"$tmp/c2.out" || fail "chaos by its own plan: $(cat "$tmp/c2.out")"
cmp "$tmp/c.out" "$tmp/c2.out" || fail "a seed and its plan are two runs"
sim leaf-spine-8.conf --chaos 1-5 >"$tmp/c.out" || fail "chaos on a conf: $(cat "$tmp/c.out")"
has '^5 seeds, 0 failed' "$tmp/c.out"
refuses 2 '--chaos: found "x", expected a seed' --chaos x
refuses 2 '--chaos: found all_reduce too' leaf-spine-8.conf --chaos 3 all_reduce

# results come as rows end: of a run that is stopped what it had is there
"$TRIB_BUILD/trib-sim" "$conf/leaf-spine-8.conf" -b 4K -e 16M -f 4096 --algo sharp --payload none -n 200 -J "$tmp/i.json" >"$tmp/i.out" 2>"$tmp/i.err" &
child=$!
for ((i = 0; i < 600; i++)); do
    [ -s "$tmp/i.json" ] && break
    sleep 0.05
done
[ -s "$tmp/i.json" ] || fail "no results while it runs"
has '"error": "not finished"' "$tmp/i.json"
kill -INT $child
wait $child
[ $? = 130 ] || fail "interrupted: expected exit code 130"
has '"error": "interrupted"' "$tmp/i.json"
has '"size_bytes": 4096' "$tmp/i.json"

refuses 1 'stopped after 0.5 s of wall time \(--max-wall\)' leaf-spine-8.conf -b 4K -e 16M -f 4096 --algo sharp --payload none -n 1000 --max-wall 0.5

# a slow host: the same times whether somebody looks at each frame or not
echo 'faults = ( { host = "h3"; slow = 3; } );' >"$tmp/slow.conf"
sim leaf-spine-8.conf --faults "$tmp/slow.conf" -b 64K -e 64K >"$tmp/s1.out" || fail "slow: $(cat "$tmp/sim.err")"
sim leaf-spine-8.conf --faults "$tmp/slow.conf" -b 64K -e 64K --trace "$tmp/s.pcapng" >"$tmp/s2.out" || fail "slow, traced: $(cat "$tmp/sim.err")"
diff <(grep -E '^ +65536' "$tmp/s1.out") <(grep -E '^ +65536' "$tmp/s2.out") || fail "a trace changes the times of a slow host"

# without a warm-up the first operation makes no connections either
for w in 0 1; do
    sim leaf-spine-8.conf --algo all -b 4K -e 4K -n 1 -w $w -J "$tmp/w$w.json" >"$tmp/w.out" || fail "-w $w: $(cat "$tmp/sim.err")"
    # a buffer of another size: NVSwitches bind it before the row
    sim rail-2x4.conf --algo nvls_sharp -b 256K -e 1M -f 4 -n 1 -w $w -J "$tmp/n$w.json" >"$tmp/w.out" || fail "nvls_sharp, -w $w: $(cat "$tmp/sim.err")"
    jq -r '.results[] | "\(.algo) \(.in_place) \(.time_us)"' "$tmp/w$w.json" "$tmp/n$w.json" >"$tmp/w$w.rows"
done
paste -d ' ' "$tmp/w0.rows" "$tmp/w1.rows" | awk '$3 > 1.02 * $6 || $1 != $4 { print; bad++ } END { exit bad > 0 || NR != 14 }' >"$tmp/w.rows" ||
    fail "-w 0 is more than 2 % slower than -w 1: $(cat "$tmp/w.rows")"

# one of both places
sim h100-su.conf all_reduce --algo sharp -b 64K -e 64K --place in >"$tmp/p.out" || fail "in place: $(cat "$tmp/sim.err")"
awk '$1 == 65536 { n++; if ($6 != "in" || $10 != 0) bad++ } END { exit !(n == 1 && !bad) }' "$tmp/p.out" || fail "--place in: $(tail -5 "$tmp/p.out")"
refuses 2 '--place: found "side", expected one of both, out, in' leaf-spine-8.conf --place side
refuses 2 '--place: found in, expected out' leaf-spine-8.conf alltoall --place in

refuses 1 'no conf file' nowhere.conf
refuses 1 "found the collective 'all_reduce' and no CONF, expected: trib sim CONF all_reduce" all_reduce
refuses 2 'COLLECTIVE: found "all_gatherx", expected one of .* did you mean all_gather' leaf-spine-8.conf all_gatherx
refuses 2 '--payload: found "some", expected one of data, none' leaf-spine-8.conf --payload some
refuses 2 '--seed: found "x", expected a whole number' leaf-spine-8.conf --seed=x
refuses 2 '--seed: found nothing, expected N' leaf-spine-8.conf --seed
refuses 2 '--rsh is not supported in simulation' leaf-spine-8.conf --rsh ssh
refuses 2 '--mem is not supported in simulation' leaf-spine-8.conf --mem cuda
refuses 2 'nvls-hw is not supported in simulation' leaf-spine-8.conf --algo nvls-hw
refuses 2 '--error: found --payload none' leaf-spine-8.conf --payload none --error
refuses 2 '-b: found "4Q", expected a size' leaf-spine-8.conf -b 4Q
refuses 2 'found nvls, which these 4 ranks' single-switch-4.conf --algo nvls,sharp
refuses 1 '64 frames were not enough' leaf-spine-8.conf --algo ring -b 16M -e 16M --frames 64
refuses 1 '20 frames were not enough' leaf-spine-8.conf --algo ring -b 16M -e 16M --frames 20 # to connect
# an allocation that fails between two looks at the pool's level is seen, too, whoever looks
for t in 1 2 4; do
    for n in 120 124 126; do
        refuses 1 "$n frames were not enough" leaf-spine-8.conf --algo ring -b 1M -e 1M --payload none --frames $n --threads $t
    done
done
refuses 1 '124 frames were not enough' leaf-spine-8.conf --algo ring -b 1M -e 1M --payload none --frames 124 --trace "$tmp/few.pcapng"
refuses 1 'found [0-9]+ MiB of memory \([^)]*\), expected about [0-9]+: frames' leaf-spine-8.conf -b 4K -e 1T
refuses 0 '-payload data' -h
