#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# --timeline and trib explain in real time: a few planted causes are named, healthy runs name none, and files pass the same checks.
. "$(dirname "$0")/lib.sh"

explained() { # explained NAME FABRIC ARG...: a row and its time line
    trib perf "${@:2}" -n 2 -w 1 --timeline "$tmp/$1.json" >"$tmp/perf.out" 2>&1 || fail "$1: trib perf ${*:2}: $(tail -n 5 "$tmp/perf.out")"
    python3 "$root/tests/e2e/lib_timeline.py" "$tmp/$1.json" >"$tmp/check.out" 2>&1 || fail "$1: $(cat "$tmp/check.out")"
    trib explain --json "$tmp/$1.json" >"$tmp/why.out" 2>&1 || fail "$1: trib explain: $(cat "$tmp/why.out")"
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
    cmp -s <(sed "s/leaf-spine-8/$1/" "$conf/leaf-spine-8.conf") "$tmp/$1.conf" && fail "$1: $2 changes nothing"
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
echo "7 runs"
