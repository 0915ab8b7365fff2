#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A training step whose groups differ: of three groups of four hosts the second is in two pods, and is the one that is timed.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

cat >"$tmp/c.conf" <<'CONF'
mtu = 1024;
leaf_spine = { leaves = 6; spines = 4; hosts_per_leaf = 2; host_link = { rate = "200Gb/s"; latency = "300ns"; };
    spine_link = { rate = "200Gb/s"; latency = "300ns"; }; pods = 2; cores = 2; core_groups = 2;
    core_link = { rate = "100Gb/s"; latency = "300ns"; }; };
CONF
cat >"$tmp/w.conf" <<'CONF'
name = "w"; device = "h100";
model = { layers = 6; d_model = 128; d_ff = 128; heads = 2; vocabulary = 256; };
training = { type = "bf16"; sequence = 1024; batch_tokens = 12288; utilisation = "40%"; };
parallel = { pp = 3; dp = 4; zero = 1; order = [ "dp", "pp", "tp" ]; microbatches = 3; algorithm = { dp = "direct"; }; };
CONF
trib sim "$tmp/c.conf" --workload "$tmp/w.conf" -J "$tmp/s.json" >"$tmp/s.out" 2>&1 || fail "$(cat "$tmp/s.out")"
row='.collectives[] | select(.collective == "all_gather")'
size=$(jq "$row | .size_bytes" "$tmp/s.json")
echo "jobs = ( { hosts = \"h4:h7\"; collective = \"all_gather\"; algorithm = \"direct\"; size = $size; type = \"bfloat16\"; } );" >"$tmp/j.conf"
trib sim "$tmp/c.conf" --jobs "$tmp/j.conf" --payload none -J "$tmp/j.json" >"$tmp/j.out" 2>&1 || fail "jobs: $(cat "$tmp/j.out")"
jq -e --argjson t "$(jq '.jobs[0].time_us' "$tmp/j.json")" "$row | (.hosts.time_us / \$t - 1 | fabs) < 0.05" "$tmp/s.json" >/dev/null ||
    fail "the slowest group takes $(jq '.jobs[0].time_us' "$tmp/j.json") us: $(cat "$tmp/s.out")"
