#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib explain names what was planted: a cause in each of these runs, none in healthy ones. In virtual time.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
keep=${KEEP:-$tmp}

n=0
run() { # run NAME ARG...
    trib sim "${@:2}" -w 0 --check 0 --timeline "$keep/$1.json" >"$tmp/sim.out" 2>&1 || fail "$1: trib sim ${*:2}: $(cat "$tmp/sim.out")"
    trib explain --json "$keep/$1.json" >"$tmp/why.out" 2>&1 || fail "$1: trib explain: $(cat "$tmp/why.out")"
    n=$((n + 1))
}
planted() { # planted NAME CAUSE TEXT ARG...: the first cause is CAUSE, and its line has TEXT
    run "$1" "${@:4}"
    jq -e --arg cause "$2" --arg text "$3" '.causes[0] | .cause == $cause and (.text | test($text))' "$tmp/why.out" >"$tmp/jq.out" ||
        fail "$1: expected $2 with /$3/, found: $(trib explain "$keep/$1.json")"
}
healthy() { # healthy NAME ARG...
    run "$@"
    jq -e '.causes == [] and (.critical_path | map(.share) | add > 0.95 and add < 1.05)' "$tmp/why.out" >"$tmp/jq.out" || fail "$1 is healthy, found: $(trib explain "$keep/$1.json")"
}
faults() { # faults ENTRY: a plan of it
    echo "faults = ( { $1 } );" >"$tmp/plan.$n.conf"
    echo "$tmp/plan.$n.conf"
}
one=(-b 1M -e 1M)

# ---- confs ----
star() { # star EXTRA HOST RATE LATENCY: eight hosts at one switch, one of them by another link
    local others
    others=$(for i in 0 1 2 3 4 5 6 7; do [ h$i = "$2" ] || printf '"h%s", ' $i; done)
    cat <<END
name = "star"; mtu = 4096; $1
nodes = ( { name = ( "h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7" ); kind = "host"; }, { name = "switch0"; kind = "switch"; } );
link_defaults = { rate = "400Gb/s"; latency = "300ns"; };
links = ( { a = ( ${others%, } ); b = "switch0"; }, { a = "$2"; b = "switch0"; rate = "$3"; latency = "$4"; } );
reduce = { groups = 64; slots = 16384; window = 256; };
END
}
leaves() { # leaves EXTRA LINK KEYS: leaf-spine-8 with one link of other keys: "leaf0 spine0", "h7 leaf1"
    local l s h a b
    cat <<END
name = "leaves"; mtu = 4096; ecmp = "balanced"; $1
nodes = ( { name = ( "h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7" ); kind = "host"; },
          { name = ( "leaf0", "leaf1" ); role = "leaf"; }, { name = ( "spine0", "spine1" ); role = "spine"; } );
link_defaults = { rate = "400Gb/s"; latency = "300ns"; };
reduce = { groups = 64; slots = 16384; window = 256; };
links = (
END
    read -r a b <<<"$2"
    for h in 0 1 2 3 4 5 6 7; do
        [ "h$h leaf$((h / 4))" = "$2" ] || echo "    { a = \"h$h\"; b = \"leaf$((h / 4))\"; },"
    done
    for l in 0 1; do
        for s in 0 1; do
            [ "leaf$l spine$s" = "$2" ] || echo "    { a = \"leaf$l\"; b = \"spine$s\"; },"
        done
    done
    echo "    { a = \"$a\"; b = \"$b\"; $3 } );"
}
edit() { # edit CONF SED: a conf of ours, changed
    sed "$2" "$conf/$1.conf" >"$tmp/edited.$n.conf"
    cmp -s "$tmp/edited.$n.conf" "$conf/$1.conf" && fail "edit $1: $2 changes nothing"
    echo "$tmp/edited.$n.conf"
}
star '' h3 100Gb/s 300ns >"$tmp/slow-link.conf"
star '' h5 400Gb/s 20us >"$tmp/long-link.conf"
leaves '' 'leaf0 spine0' 'rate = "50Gb/s";' >"$tmp/slow-spine.conf"
leaves '' 'leaf1 spine1' 'latency = "30us";' >"$tmp/long-spine.conf"
leaves '' 'h7 leaf1' 'rate = "25Gb/s";' >"$tmp/slow-h7.conf"

# ---- causes ----
planted slow-ring "slow host" 'h3' leaf-spine-8 "${one[@]}" --algo ring --faults "$(faults 'host = "h3"; slow = 4;')"
planted slow-sharp "slow host" 'h5' leaf-spine-8 "${one[@]}" --algo sharp --faults "$(faults 'host = "h5"; slow = 8;')"
planted slow-alltoall "slow host" 'h6' leaf-spine-8 alltoall "${one[@]}" --algo direct --faults "$(faults 'host = "h6"; slow = 5;')"
planted late-ring "straggling rank" 'rank 3' leaf-spine-8 "${one[@]}" --algo ring --faults "$(faults 'rank = 3; late = "50us";')"
planted late-sharp "straggling rank" 'rank 6' leaf-spine-8 -b 64K -e 64K --algo sharp --faults "$(faults 'rank = 6; late = "20us";')"
planted lossy-ring "lossy link" 'h2' leaf-spine-8 "${one[@]}" --algo ring --faults "$(faults 'link = "h2-leaf0"; loss = "1%";')"
planted lossy-sharp "lossy link" 'leaf0 to spine1|spine1 to leaf0' leaf-spine-8 "${one[@]}" --algo sharp --faults "$(faults 'link = "leaf0-spine1"; loss = "2%";')"
planted corrupt "lossy link" 'h6' leaf-spine-8 "${one[@]}" --algo halving --faults "$(faults 'link = "h6-leaf1"; corrupt = "1%";')"
planted full-queues "full queue" 'h0' incast-32-lossy gather -g 33 -b 4M -e 4M --payload none --algo direct
planted link-down "link down" 'h3' leaf-spine-8 "${one[@]}" --algo ring --faults "$(faults 'at = "10us"; link = "h3-leaf0"; down = true; }, { at = "15us"; link = "h3-leaf0"; up = true;')"
planted oversubscribed "oversubscribed" 'leaf. to spine|spine. to leaf' "$(edit leaf-spine-8 's/spines = 2/spines = 1/')" alltoall "${one[@]}" --algo direct
planted thin-spines "oversubscribed" 'leaf. to spine|spine. to leaf' "$(edit leaf-spine-8 '/spine_link/s/400Gb/100Gb/')" "${one[@]}" --algo sharp
planted collisions "uneven load" 'spine' "$(edit leaf-spine-8 's/balanced/hash/; s/spines = 2/spines = 4/')" "${one[@]}" --algo halving
planted slow-link "slow link" 'h3' "$tmp/slow-link.conf" "${one[@]}" --algo ring
planted slow-spine "slow link" 'leaf0 to spine0|spine0 to leaf0' "$tmp/slow-spine.conf" "${one[@]}" --algo sharp
planted long-link "long link" 'h5' "$tmp/long-link.conf" -b 64K -e 64K --algo ring
planted long-spine "long link" 'leaf1 to spine1|spine1 to leaf1' "$tmp/long-spine.conf" -b 64K -e 64K --algo sharp
planted background "background flow" 'h1>h6' leaf-spine-8 "${one[@]}" --algo ring --background-flow h1:h6
planted victim "PFC victim" 'h7' "$tmp/slow-h7.conf" -g 6 "${one[@]}" --algo ring --background-flow h0:h7
planted incast "incast" '32 hosts send to h0 at once, so PFC pauses .* behind it: .* [6-9]. % of the time' leaf-spine-64 gather -g 33 -b 33M -e 33M --payload none --algo direct --place out
planted window "small window" '8 ' leaf-spine-8 "${one[@]}" --algo sharp --window 8
planted quota "small window" '8 ' "$(edit leaf-spine-8 's/window = 256/window = 8/')" "${one[@]}" --algo sharp
planted transport "small window" '4 ' "$(edit leaf-spine-8 's/^mtu.*/&\ntransport = { window = 4; };/')" "${one[@]}" --algo ring
planted refused "refused group" 'leaf' leaf-spine-8 "${one[@]}" --algo sharp --faults "$(faults 'an = "leaf1"; mbufs = 0;')"

# ---- none ----
healthy ring leaf-spine-8 "${one[@]}" --algo ring
healthy sharp leaf-spine-8 "${one[@]}" --algo sharp
healthy tree leaf-spine-8 "${one[@]}" --algo tree
healthy halving single-switch-4 "${one[@]}" --algo halving
healthy small single-switch-4 -b 4K -e 4K --algo ring
healthy small-sharp leaf-spine-8 -b 4K -e 4K --algo sharp
healthy alltoall single-switch-4 alltoall "${one[@]}" --algo direct
healthy nvls h100-node "${one[@]}" --algo nvls
healthy node-ring h100-node "${one[@]}" --algo ring
healthy rails rail-2x4 "${one[@]}" --algo hier
healthy gather leaf-spine-8 gather "${one[@]}" --algo direct
healthy switch-gather leaf-spine-8 all_gather -b 4M -e 4M --algo sharp --payload none
healthy broadcast leaf-spine-8 broadcast "${one[@]}" --algo chain
healthy measured h100-node-measured "${one[@]}" --algo ring
healthy protocol leaf-spine-8 -b 64K -e 64K --algo switchml
# ---- the text, and what is no time line ----
trib explain "$keep/slow-ring.json" >"$tmp/text.out" 2>&1 || fail "trib explain: $(cat "$tmp/text.out")"
has '^all_reduce by ring, 1 MiB, 8 ranks on leaf-spine-8, in virtual time: [0-9.]+ us, [0-9.]+ times the [0-9.]+ us of the model$' "$tmp/text.out"
has '^Slow host: h3 has messages to send for [0-9.]+ us' "$tmp/text.out"
has '^ +[0-9]+ % +[0-9.]+ us  between rank 3 \(h3\) and rank 4' "$tmp/text.out"
trib explain "$keep/ring.json" >"$tmp/text.out" 2>&1
has '^Nothing stands out: links are busy 9[0-9] % of the time at most' "$tmp/text.out"
trib sim leaf-spine-8 "${one[@]}" --algo ring -J "$tmp/rows.json" >"$tmp/sim.out" 2>&1
jq 'del(.otherData.operation.ranks[0].ended_us)' "$keep/ring.json" >"$tmp/part.json"
jq '.traceEvents |= map(select(.cat != "operation"))[:500]' "$keep/ring.json" >"$tmp/short.json"
head -c 5000 "$keep/ring.json" >"$tmp/cut.json"
printf '\377\376' >"$tmp/bytes.json"
bad() { # bad TEXT ARG...
    trib explain "${@:2}" >"$tmp/bad.out" 2>&1 && fail "trib explain ${*:2}: $(cat "$tmp/bad.out")"
    has "$1" "$tmp/bad.out"
    has_not Traceback "$tmp/bad.out"
}
bad 'rows.json: found no otherData.kind' "$tmp/rows.json"
bad 'cut.json: found .*, expected a time line' "$tmp/cut.json"
bad 'bytes.json: found .*, expected a time line' "$tmp/bytes.json"
bad 'part.json: found a time line that is not whole' "$tmp/part.json"
bad 'none.json: No such file' "$tmp/none.json"
bad 'found no FILE, expected one FILE' --json
bad "found --jason, expected an option of trib-explain; did you mean --json" --jason x
trib explain "$tmp/short.json" >"$tmp/text.out" 2>&1 || fail "a file without the ends: $(cat "$tmp/text.out")"
echo "$n runs"
