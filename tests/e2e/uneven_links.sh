#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Links of different rates: SHARP gives each tree a share by what its links carry, with exact sums, and the formula of SwitchML knows
# links between switches that are slower than those of hosts.
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
row() { # row CONF ALGO SIZE JQ: the row satisfies JQ
    trib sim "$tmp/$1.conf" all_reduce --algo "$2" -b "$3" -n 1 -w 1 --place out -J "$tmp/row.json" >"$tmp/row.out" 2>&1 ||
        fail "$1, $2: $(tail -n 3 "$tmp/row.out")"
    jq -e ".results[0] | .wrong == 0 and (.time_us / .predicted_us | . > 0.97 and . < 1.03) and ($4)" "$tmp/row.json" >/dev/null ||
        fail "$1, $2: $(jq -c '.results[0] | [.time_us, .predicted_us, .wrong]' "$tmp/row.json"), expected $4"
}
row two-ports sharp 4M '.time_us < 120' # the faster port alone takes 172 us
row slow-spine switchml 256K true
row slow-spine switchml 4M true
