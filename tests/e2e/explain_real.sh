#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# --timeline and trib explain in real time: planted causes are named, healthy runs name none, and files pass the same checks. A few of the cases;
# ALL=1 has all of them (make explain-real).
. "$(dirname "$0")/lib.sh"

n=0
explained() { # explained NAME FABRIC ARG...: a row and its time line
    trib perf "${@:2}" -n 2 -w 1 --timeline "$tmp/$1.json" >"$tmp/perf.out" 2>&1 || fail "$1: trib perf ${*:2}: $(tail -n 5 "$tmp/perf.out")"
    python3 "$root/tests/e2e/lib_timeline.py" "$tmp/$1.json" >"$tmp/check.out" 2>&1 || fail "$1: $(cat "$tmp/check.out")"
    trib explain --json "$tmp/$1.json" >"$tmp/why.out" 2>&1 || fail "$1: trib explain: $(cat "$tmp/why.out")"
    n=$((n + 1))
    [ -z "${ALL:-}" ] || echo "$1: $(jq -r '[.causes[].cause] | if . == [] then "none" else join(", ") end' "$tmp/why.out")"
}
planted() { # planted NAME CAUSE TEXT ARG...
    explained "$1" "${@:4}"
    jq -e --arg cause "$2" --arg text "$3" '.causes[0] | .cause == $cause and (.text | test($text))' "$tmp/why.out" >"$tmp/jq.out" ||
        fail "$1: expected $2 with /$3/, found: $(trib explain "$tmp/$1.json")"
}
healthy() { # healthy NAME ARG...
    explained "$@"
    jq -e '.causes == []' "$tmp/why.out" >"$tmp/jq.out" || fail "$1 is healthy, found: $(trib explain "$tmp/$1.json")"
}
kib=(all_reduce -b 256K -e 256K)
changed() { # changed NAME SED: leaf-spine-8 as another fabric
    sed "s/leaf-spine-8/$1/; $2" "$conf/leaf-spine-8.conf" >"$tmp/$1.conf"
    [ -n "$2" ] && cmp -s <(sed "s/leaf-spine-8/$1/" "$conf/leaf-spine-8.conf") "$tmp/$1.conf" && fail "$1: $2 changes nothing"
    echo "$tmp/$1.conf"
}

healthy ring leaf-spine-8 "${kib[@]}" --algo ring
healthy sharp leaf-spine-8 "${kib[@]}" --algo sharp
jq -e '.otherData | .clock == "real" and (.run | has("machine"))' "$tmp/ring.json" >"$tmp/jq.out" || fail "a time line of real time: $(jq -c .otherData.run "$tmp/ring.json")"
[ "$(jq '[.traceEvents[] | select(.ph == "s")] | length' "$tmp/ring.json")" = "$(jq '[.traceEvents[] | select(.cat == "send")] | length' "$tmp/ring.json")" ] ||
    fail "a message without an arrow"
planted refused "refused group" 'leaf' "$(changed refused 's/window = 256/window = 4/')" "${kib[@]}" --algo sharp
planted thin "oversubscribed" 'leaf. to spine|spine. to leaf' "$(changed thin '/spine_link/s/400Gb/50Gb/')" "${kib[@]}" --algo sharp
planted window "small window" '8 ' "$(changed window 's/window = 256/window = 8/')" "${kib[@]}" --algo sharp
planted long "long link" 'leaf|spine' "$(changed long '/spine_link/s/300ns/20us/')" all_reduce -b 64K -e 64K --algo sharp
planted lossy "lossy link" 'loses' "$(changed lossy '/host_link/s/300ns";/300ns"; loss = 0.005;/; s/^mtu.*/&\ntransport = { ack_timeout = "30us"; };/')" "${kib[@]}" --algo ring
[ -n "${ALL:-}" ] || { echo "$n runs"; exit; }

# ---- the campaign ----
one=(all_reduce -b 1M -e 1M)
other() { # other NAME LINK KEYS: leaf-spine-8 with one link of other keys, and timeouts that suit its loss
    sed "s/leaf-spine-8/$1/; s/^mtu.*/&\ntransport = { ack_timeout = \"30us\"; };/; \$ a links = ( { of = \"$2\"; $3 } );" "$conf/leaf-spine-8.conf" >"$tmp/$1.conf"
    echo "$tmp/$1.conf"
}
healthy tree leaf-spine-8 "${kib[@]}" --algo tree
healthy halving single-switch-4 "${one[@]}" --algo halving
healthy small single-switch-4 all_reduce -b 4K -e 4K --algo ring
healthy small-sharp leaf-spine-8 all_reduce -b 4K -e 4K --algo sharp
healthy alltoall single-switch-4 alltoall -b 1M -e 1M --algo direct
healthy gather leaf-spine-8 gather -b 1M -e 1M --algo direct
healthy broadcast leaf-spine-8 broadcast -b 1M -e 1M --algo chain
healthy large leaf-spine-8 all_reduce -b 4M -e 4M --algo sharp

planted lossy-spine "lossy link" 'leaf0 to spine1|spine1 to leaf0' "$(other lossy2 leaf0-spine1 'loss = 0.025;')" --max-wall 150 "${one[@]}" --algo sharp
planted corrupt "lossy link" 'h6' "$(other corrupt h6-leaf1 'corrupt = 0.01;')" "${kib[@]}" --algo halving
planted one-spine "oversubscribed" 'leaf. to spine|spine. to leaf' "$(changed one-spine 's/spines = 2/spines = 1/')" alltoall -b 1M -e 1M --algo direct
planted thin-large "oversubscribed" 'leaf. to spine|spine. to leaf' "$(changed thin2 '/spine_link/s/400Gb/100Gb/')" "${one[@]}" --algo sharp
planted slow-link "slow link" 'h3' "$(other slow3 h3-leaf0 'rate = "100Gb/s";')" "${one[@]}" --algo ring
planted slow-link-sharp "slow link" 'h6' "$(other slow6 h6-leaf1 'rate = "50Gb/s";')" "${one[@]}" --algo sharp
planted slow-spine "slow link" 'leaf0 to spine0|spine0 to leaf0' "$(other slowspine leaf0-spine0 'rate = "50Gb/s";')" "${one[@]}" --algo sharp
planted long-link "long link" 'h5' "$(other long5 h5-leaf1 'latency = "20us";')" all_reduce -b 64K -e 64K --algo ring
planted long-spine "long link" 'leaf1 to spine1|spine1 to leaf1' "$(other longspine leaf1-spine1 'latency = "30us";')" all_reduce -b 64K -e 64K --algo sharp
planted asked-window "small window" '8 ' leaf-spine-8 "${one[@]}" --algo sharp --window 8
planted refused-large "refused group" 'leaf' "$(changed refused2 's/window = 256/window = 2/')" "${one[@]}" --algo sharp

# beside a program that writes from one host to another: beside NAME FABRIC FROM TO CAUSE TEXT ARG...
beside() {
    local name=$1 fabric=$2 from=$3 to=$4
    shift 4
    trib up "$fabric" >"$tmp/up.out" 2>&1 || fail "$name: trib up: $(cat "$tmp/up.out")"
    next_port
    trib exec "$fabric" "$to" -- ib_write_bw -d trib0 -p $port -s 65536 -D 600 -u 22 -F >"$tmp/to.out" 2>&1 &
    until_true 10 listens || fail "$name: $(cat "$tmp/to.out")"
    trib exec "$fabric" "$from" -- ib_write_bw -d trib0 -p $port -s 65536 -D 600 -u 22 -F 127.0.0.1 >"$tmp/from.out" 2>&1 &
    sleep 3
    planted "$name" "$1" "$2" "$fabric" "${@:3}"
    kill $(jobs -p) 2>/dev/null
    wait
    trib down "$fabric" >/dev/null 2>&1
}
# with a rank that does not run half of the time: stopping RANK, until its job has ended
stopping() {
    local pid=
    until [ -n "$pid" ]; do
        sleep 0.05
        pid=$(pgrep -s 0 -f '^trib-perf --rank-process' | sed -n "$(($1 + 1))p")
    done
    while kill -STOP "$pid" 2>/dev/null; do
        sleep 0.03
        kill -CONT "$pid" 2>/dev/null
        sleep 0.03
    done
}
slowed() { # slowed NAME RANK ARG...
    stopping "$2" &
    planted "$1" "slow host" "the process of h$2 " leaf-spine-8 "${@:3}"
    wait
}
slowed stopped-5 5 "${kib[@]}" --algo ring
slowed stopped-2 2 "${kib[@]}" --algo sharp
slowed stopped-7 7 "${one[@]}" --algo tree

beside background "$(changed beside '')" h1 h6 "background flow" 'h1|h6|leaf' "${one[@]}" --algo ring
beside background-4M "$(changed beside2 '')" h2 h7 "background flow" 'h2|h7|leaf' all_reduce -b 4M -e 4M --algo ring
beside victim "$(other victim h7-leaf1 'rate = "50Gb/s";')" h0 h7 "PFC victim" 'h7' -g 6 "${one[@]}" --algo ring
beside victim-2 "$(other victim2 h6-leaf1 'rate = "100Gb/s";')" h1 h6 "PFC victim" 'h6' -g 6 "${one[@]}" --algo ring
echo "$n runs"
