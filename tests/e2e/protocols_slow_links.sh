#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# Where links between switches are eight times slower than those of hosts, and eight hosts of a switch share two of them, protocols wait
# for what queues there, and send nothing again that is not lost.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

echo 'ecmp = "balanced"; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 8; host_link = { rate = "400Gb/s"; latency = "300ns"; };
    spine_link = { rate = "50Gb/s"; latency = "300ns"; }; }; reduce = { };' >"$tmp/slow.conf"
trib sim "$tmp/slow.conf" --algo switchml,ps,atp -d int32 -b 512K -e 512K -w 0 -n 1 --place out -J "$tmp/slow.json" >"$tmp/sim.out" 2>&1 ||
    fail "$(cat "$tmp/sim.out")"
for p in switchml ps atp; do
    jq -e ".results[] | select(.algo == \"$p\") | .protocol.resent == 0 and .time_us / .predicted_us > 0.95 and .time_us / .predicted_us < 1.05" "$tmp/slow.json" >"$tmp/jq.out" ||
        fail "$p: $(grep -E "$p " "$tmp/sim.out")"
done
