#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Links of different rates: SHARP has a tree for each port of a host, also where ports share a root, and gives each tree a share by what its
# links carry, with exact sums; aggregation protocols have an instance on each tree with which they carry more. The formula of SwitchML
# knows links between switches that are slower than those of hosts.
# tier: integration
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
for algo in switchml:130 atp:168 ps:179; do # by the faster port alone 189, 242 and 260
    row two-ports ${algo%:*} 4M ".time_us < ${algo#*:}"
    row two-ports ${algo%:*} 1000004 true
    row two-ports ${algo%:*} 4 true
done
row slow-spine switchml 256K true
row slow-spine switchml 4M true
# In ports' own rates together 4 MiB take 111.8, 83.9 and 47.9 us; by the fastest port alone, one tree a root, they took 167.8 and 83.9.
for kind in all_reduce reduce broadcast reduce_scatter all_gather; do
    row one-spine sharp 4M '.time_us < 117' $kind
done
row one-leaf sharp 4M '.time_us < 117'
row equal sharp 4M '.time_us < 89'
row three sharp 4M '.time_us < 51.5'
row three switchml 4M '.time_us < 57'
sed 's/spines = 1/spines = 4/' "$tmp/slow-spine.conf" >"$tmp/slow-spines.conf"
row slow-spines switchml 4M '.time_us < 100' # by one spine 378
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

# Aggregation protocols go on without a tree whose switch restarts or whose link fails, between switches or to a host that has other ports:
# the operation starts over, and the row says by how many trees.
fewer() { # fewer CONF ALGO FAULT TEXT
    echo "faults = ( { at = \"20us\"; $3 } );" >"$tmp/fewer.faults"
    trib sim "$tmp/$1.conf" all_reduce --algo "$2" -d int32 -b 1M -e 1M -n 3 -w 0 --faults "$tmp/fewer.faults" -J "$tmp/row.json" --wide >"$tmp/row.out" 2>&1 ||
        fail "$1, $2, $3: $(tail -n 3 "$tmp/row.out")"
    jq -e '.results | length >= 1 and all(.wrong == 0 and .algo == .asked)' "$tmp/row.json" >/dev/null || fail "$1, $2, $3: $(jq -c .results "$tmp/row.json")"
    grep -qE "fell back, out-of-place, 2 of 3 operations wholly by $2: .*$4" "$tmp/row.out" || fail "$1, $2, $3: $(grep fell "$tmp/row.out"), expected $4"
}
for algo in switchml atp; do
    fewer two-ports $algo 'node = "slow"; restart = "5us";' "slow .*operation 1 starts over.; $algo by 1 of 2 trees"
    fewer two-ports $algo 'link = "h1-slow"; down = true;' "link to h1 is down .*; $algo by 1 of 2 trees"
done
fewer slow-spines switchml 'link = "leaf0-spine1"; down = true;' 'link to spine1 is down .*; switchml by 3 of 4 trees'

# The next algorithm of the policy is SHARP, and one of its trees failed with the protocol's: the operation starts over by the trees that are
# left. And the other way round, to a protocol, whose order of summation is its own.
next() { # next CONF ALGO POLICY FAULT
    echo "faults = ( { at = \"7us\"; $4 } );" >"$tmp/next.faults"
    trib sim "$tmp/$1.conf" all_reduce --algo "$2" --policy "$3" -d int32,float -b 1M -e 1M -n 3 -w 0 --faults "$tmp/next.faults" -J "$tmp/row.json" --wide >"$tmp/row.out" 2>&1 ||
        fail "$1, $2, then $3, $4: $(tail -n 3 "$tmp/row.out")"
    jq -e '.results | length >= 2 and all(.wrong == 0)' "$tmp/row.json" >/dev/null || fail "$1, $2, then $3, $4: $(jq -c .results "$tmp/row.json")"
    grep -q 'fell back' "$tmp/row.out" || fail "$1, $2, then $3, $4: no failure was seen"
}
for policy in sharp sharp,ring; do
    for algo in switchml atp; do
        next slow-spines $algo $policy 'link = "leaf0-spine0"; down = true;'
        next slow-spines $algo $policy 'node = "spine0"; restart = "5us";'
    done
done
for policy in switchml switchml,ring atp,ring; do
    next two-ports sharp $policy 'node = "fast"; restart = "1us";'
done
