#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A link of one of two aggregation trees goes down and is repaired under SHARP: one operation is cut, the next ones run by the tree that
# is left, in its time, and those after the repair by both again. With the only tree, with a switch that restarts, and without
# another algorithm in the policy too. Every element is right.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

# The links to the spines bind: two trees take half the time of one.
cat >"$tmp/two.conf" <<'EOF'
mtu = 4096;
leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; host_link = { rate = "400Gb/s"; latency = "300ns"; };
    spine_link = { rate = "200Gb/s"; latency = "300ns"; }; };
reduce = { groups = 64; slots = 16384; window = 2048; };
EOF
echo 'faults = ( { at = "300us"; link = "leaf0-spine1"; down = true; }, { at = "1ms"; link = "leaf0-spine1"; up = true; } );' >"$tmp/link.conf"
echo 'faults = ( { at = "300us"; node = "spine1"; restart = "400us"; } );' >"$tmp/switch.conf"

sim() { # sim NAME OPTION...
    trib sim "$tmp/two.conf" --algo sharp -d float -b 512K -e 512K -w 0 --place out -J "$tmp/$1.json" "${@:2}" >"$tmp/$1.out" 2>&1 ||
        fail "$1: $(tail -n 4 "$tmp/$1.out")"
    jq -e '.results[0].wrong == 0' "$tmp/$1.json" >/dev/null || [[ "$*" == *lengths* ]] || fail "$1: wrong elements"
}
sim both -n 2
sim one -n 2 --tree 0
one=$(jq '.results[0].times_us[1]' "$tmp/one.json")

# phases NAME: the order of operations in the time of both trees (fast), of one (one), or in another; then when the last phase began
phases() {
    jq -r '.results[0].times_us[]' "$tmp/$1.json" | awk -v fast="$(jq '.results[0].times_us[1]' "$tmp/both.json")" -v one="$one" '
        function near(x, y) { return x > 0.98 * y && x < 1.02 * y }
        { p = near($1, fast) ? "fast" : near($1, one) ? "one" : "other" }
        p != last { seen = seen " " p; last = p; since = at }
        { at += $1 }
        END { print seen; print since }'
}
shows() { # shows NAME REGEX: and both trees from soon after the repair on
    mapfile -t p < <(phases "$1")
    [[ "${p[0]}" =~ $2 ]] || fail "$1: expected $2, found${p[0]}"
}

sim link -n 100 --faults "$tmp/link.conf"
shows link '^ fast other one( other)? fast$'
# lost trees are asked at most each millisecond
awk -v t="${p[1]}" 'BEGIN { exit !(t > 1000 && t < 2100) }' || fail "both trees from ${p[1]} us on, expected soon after 1000"
sim lengths -n 100 --faults "$tmp/link.conf" --payload none
cmp -s <(jq -c '.results[0].times_us' "$tmp/link.json") <(jq -c '.results[0].times_us' "$tmp/lengths.json") || fail "times without payload differ"
sim switch -n 120 --faults "$tmp/switch.conf"
shows switch ' one( other)? fast$'
sim alone -n 100 --faults "$tmp/link.conf" --policy sharp # the tree that is left is no other algorithm
shows alone '^ fast other one( other)? fast$'
sim only -n 70 --faults "$tmp/link.conf" --tree 1 # hosts meanwhile
shows only '^ one other one$'
