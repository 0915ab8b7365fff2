#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Training steps of the workloads that come with trib, on the fabrics of their size: no time is below what a member's links allow, by
# hand: (N - 1) / N of the bytes over 50 GB/s of a NIC or 450 GB/s of NVLinks. WORKLOADS=all: those too that take minutes.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

bounds='
def Bps: if .stride < 8 and .group * .stride <= 8 then 450e9 else 50e9 end;
def node: ([.group * .stride, 8] | min) / .stride | [., 1] | max; # members of a node
def share: if .collective == "sendrecv" then 1 elif .collective == "alltoall" then 1 - node / .group
    elif Bps == 450e9 then 1 - 1 / .group else (1 - node / .group) / node end;
def by_hand(times): .size_bytes * share * times / Bps * 1e6;
[.collectives[] | . as $c | {hosts: (if .collective == "all_reduce" then 2 else 1 end), nvswitches: 1, switches: 1} | to_entries[] |
    .value as $n | $c[.key] as $t | ($c | by_hand($n)) as $least |
    {method: .key, c: $c | {parallel, collective, group, experts}, t: $t, $least,
     ok: ($t.time_us >= $least and $t.time_us >= $t.bound_us and $t.high_us >= $t.time_us and $t.time_us < 10 * $least and
         $t.bound_us >= 0.999 * $least)}]'
for w in megatron-16b:1024 llama3-70b:4096 llama3-405b:4096 $([ "${WORKLOADS:-}" != all ] ||
    echo megatron-70b:1024 megatron-314b:4096 deepseek-v3:2048); do
    trib sim "h100-superpod-${w#*:}" --workload "${w%:*}" -J "$tmp/w.json" >"$tmp/w.out" 2>&1 || fail "$w: $(cat "$tmp/w.out")"
    jq "$bounds" "$tmp/w.json" >"$tmp/bounds.json" || fail "$w: $(cat "$tmp/w.json")"
    jq -e 'length >= 9 and all(.ok)' "$tmp/bounds.json" >/dev/null || fail "$w: $(jq -c '.[] | select(.ok | not)' "$tmp/bounds.json")"
    # hidden or not, computing at the peak cannot be shortened
    jq -e 'all(.hosts, .nvswitches, .switches; .step_us >= $m and .exposed_us >= 0)' --argjson m "$(jq .math_us "$tmp/w.json")" "$tmp/w.json" >/dev/null ||
        fail "$w: $(cat "$tmp/w.out")"
done
[ "${WORKLOADS:-}" = all ] || exit 0

# sixteen MiB over eight nodes do not saturate links by the hierarchical algorithm: larger ones are simulated, and the range is narrow
cat >"$tmp/dp.conf" <<'CONF'
name = "dp64"; device = "h100";
model = { layers = 16; d_model = 4096; d_ff = 16384; heads = 32; vocabulary = 32768; };
training = { type = "bf16"; sequence = 4096; batch_tokens = 4194304; utilisation = "40%"; };
parallel = { tp = 1; dp = 64; zero = 1; microbatches = 1; };
CONF
trib sim h100-su --workload "$tmp/dp.conf" -J "$tmp/dp.json" >"$tmp/dp.out" 2>&1 || fail "dp 64: $(cat "$tmp/dp.out")"
jq -e 'all(.collectives[].hosts; .simulated_bytes > 16777216 and .time_us > 1.02 * .bound_us and .high_us < 1.1 * .time_us and (.shared | not))' \
    "$tmp/dp.json" >/dev/null || fail "dp 64: $(cat "$tmp/dp.out")"
