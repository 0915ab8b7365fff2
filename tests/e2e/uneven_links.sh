#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Links of different rates: SHARP has a tree for each port of a host, also where ports share a root, and gives each tree a share by what its
# links carry, with exact sums; the formula of SwitchML knows links between switches that are slower than those of hosts.
# clock: virtual
. "$(dirname "$0")/lib.sh"

cat >"$tmp/two-ports.conf" <<'EOF'
mtu = 4096; link_defaults = { latency = "300ns"; };
nodes = ( { name = ("h0", "h1", "h2", "h3"); kind = "host"; }, { name = ("fast", "slow"); role = "leaf"; } );
links = ( { a = ("h0", "h1", "h2", "h3"); b = "fast"; rate = "200Gb/s"; }, { a = ("h0", "h1", "h2", "h3"); b = "slow"; rate = "100Gb/s"; } );
reduce = { groups = 64; slots = 16384; window = 2048; };
EOF
cat >"$tmp/slow-spine.conf" <<'EOF'
mtu = 4096;
leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 4; host_link = { rate = "400Gb/s"; latency = "300ns"; };
    spine_link = { rate = "100Gb/s"; latency = "300ns"; }; };
reduce = { groups = 64; slots = 16384; window = 2048; };
EOF
# shared NAME LEAVES SPINES LINKS: hosts whose ports share a root.
shared() {
    cat >"$tmp/$1.conf" <<EOF
mtu = 4096; link_defaults = { rate = "800Gb/s"; latency = "300ns"; };
nodes = ( { name = ("h0", "h1", "h2", "h3"); kind = "host"; }, { name = ($2); role = "leaf"; }$3 );
links = ( $4 );
reduce = { groups = 64; slots = 16384; window = 2048; };
EOF
}
all='a = ("h0", "h1", "h2", "h3")' spine=', { name = "s0"; role = "spine"; }'
shared one-spine '"l0", "l1"' "$spine" "{ $all; b = \"l0\"; rate = \"100Gb/s\"; }, { $all; b = \"l1\"; rate = \"200Gb/s\"; },
    { a = (\"l0\", \"l1\"); b = \"s0\"; }"
shared one-leaf '"l0"' '' "{ $all; b = \"l0\"; rate = \"100Gb/s\"; }, { $all; b = \"l0\"; rate = \"200Gb/s\"; }"
shared equal '"l0", "l1"' "$spine" "{ $all; b = \"l0\"; rate = \"200Gb/s\"; }, { $all; b = \"l1\"; rate = \"200Gb/s\"; },
    { a = (\"l0\", \"l1\"); b = \"s0\"; }"
shared three '"l0", "l1", "l2"' "$spine" "{ $all; b = \"l0\"; rate = \"100Gb/s\"; }, { $all; b = \"l1\"; rate = \"200Gb/s\"; },
    { $all; b = \"l2\"; rate = \"400Gb/s\"; }, { a = (\"l0\", \"l1\", \"l2\"); b = \"s0\"; }"
row() { # row CONF ALGO SIZE JQ [COLLECTIVE]: the row satisfies JQ
    trib sim "$tmp/$1.conf" "${5:-all_reduce}" --algo "$2" -b "$3" -n 1 -w 1 --place out -J "$tmp/row.json" >"$tmp/row.out" 2>&1 ||
        fail "$1, $2: $(tail -n 3 "$tmp/row.out")"
    jq -e ".results[0] | .wrong == 0 and (.time_us / .predicted_us | . > 0.97 and . < 1.03) and ($4)" "$tmp/row.json" >/dev/null ||
        fail "$1, $2: $(jq -c '.results[0] | [.time_us, .predicted_us, .wrong]' "$tmp/row.json"), expected $4"
}
row two-ports sharp 4M '.time_us < 120' # the faster port alone takes 172 us
row slow-spine switchml 256K true
row slow-spine switchml 4M true
# In ports' own rates together 4 MiB take 111.8, 83.9 and 47.9 us; by the fastest port alone, one tree a root, they took 167.8 and 83.9.
for kind in all_reduce reduce broadcast reduce_scatter all_gather; do
    row one-spine sharp 4M '.time_us < 117' $kind
done
row one-leaf sharp 4M '.time_us < 117'
row equal sharp 4M '.time_us < 89'
row three sharp 4M '.time_us < 51.5'
row three sharp 1000 'true' reduce_scatter
row three sharp 4 true
trib plan "$tmp/three.conf" >"$tmp/plan"
grep -qE '^ +2 +s0 +2 +4 +0 +l0 ' "$tmp/plan" || fail "plan: $(grep -A7 trees "$tmp/plan")"
trib plan "$tmp/three.conf" --svg >"$tmp/svg"
grep -q 'aggregation tree 1, root s0, host ports 1' "$tmp/svg" || fail "svg: $(grep aggregation "$tmp/svg")"

# A link of the faster of two trees goes down: sums go on by the slower one, the port of 100 Gb/s, and stay exact.
shared racks '"l0", "l1", "l2", "l3"' ', { name = ("s0", "s1"); role = "spine"; }' '{ a = ("h0", "h1"); b = "l0"; rate = "100Gb/s"; },
    { a = ("h0", "h1"); b = "l1"; rate = "200Gb/s"; }, { a = ("h2", "h3"); b = "l2"; rate = "100Gb/s"; },
    { a = ("h2", "h3"); b = "l3"; rate = "200Gb/s"; }, { a = ("l0", "l1", "l2", "l3"); b = ("s0", "s1"); }'
echo 'faults = ( { link = "l1-s0"; at = "20us"; down = true; } );' >"$tmp/down.faults"
trib sim "$tmp/racks.conf" all_reduce --algo sharp -b 1M -e 4M -f 4 -n 1 -w 0 --faults "$tmp/down.faults" -J "$tmp/row.json" >"$tmp/row.out" 2>&1 ||
    fail "racks: $(tail -n 3 "$tmp/row.out")"
jq -e '[.results[] | .wrong == 0] | all and length >= 2' "$tmp/row.json" >/dev/null || fail "racks: $(jq -c '[.results[].wrong]' "$tmp/row.json")"
jq -e '.results[-1].time_us | . > 335 and . < 360' "$tmp/row.json" >/dev/null || fail "racks: $(jq -c '[.results[].time_us]' "$tmp/row.json")"
