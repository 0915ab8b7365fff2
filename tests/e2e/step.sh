#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib sim --workload: the training step of a small model on two GPU nodes, the same to the byte each time; and what is refused.
# clock: virtual
. "$(dirname "$0")/lib.sh"

cat >"$tmp/w.conf" <<'CONF'
name = "small"; device = "h100";
model = { layers = 8; d_model = 2048; d_ff = 8192; heads = 16; vocabulary = 32768; experts = 8; experts_per_token = 2; expert_d_ff = 2048; dense_layers = 4; };
training = { type = "bf16"; sequence = 2048; batch_tokens = 65536; utilisation = "40%"; };
parallel = { tp = 2; dp = 2; pp = 2; ep = 2; zero = 1; microbatches = 4; };
CONF
step() { trib sim rail-2x4.conf --workload "$tmp/w.conf" --wide "$@" 2>"$tmp/err"; }

step -J "$tmp/1.json" >"$tmp/1.out" || fail "step: $(cat "$tmp/err")"
step -J "$tmp/2.json" >"$tmp/2.out" || fail "step again: $(cat "$tmp/err")"
cmp "$tmp/1.json" "$tmp/2.json" || fail "two runs differ"
cmp "$tmp/1.out" "$tmp/2.out" || fail "two runs print different tables"
has '^# 8 GPUs: tp 2, dp 2, pp 2, ep 2, zero 1; 4 microbatches of 8192 tokens; h100 at 990 TFLOP/s' "$tmp/1.out"
# tokens * d_model * 2 bytes; 4 a layer and microbatch, four layers a stage
has 'tensor +all_reduce +2 +1 +32.0 MiB +64 ' "$tmp/1.out"
has 'expert +alltoall +2 +1 +32.0 MiB +64 ' "$tmp/1.out"
has 'pipeline +sendrecv +2 +4 +16.0 MiB +8 ' "$tmp/1.out"
has 'data \(experts\) +all_gather +2 +2 ' "$tmp/1.out"

# what each takes is what the row of a collective says, and the sums are right
jq -e '
    (.collectives | length) == 7 and
    ([.collectives[] | .hosts.time_us > 0 and .switches.time_us > 0] | all) and
    ((.hosts.comms_us - ([.collectives[] | .hosts.time_us * .times] | add)) | fabs) < 1e-3 and
    ((.hosts.step_us - .math_us - .pipeline_us - .hosts.exposed_us) | fabs) < 1e-3 and
    .switches.step_us <= .hosts.step_us' "$tmp/1.json" >/dev/null || fail "sums: $(cat "$tmp/1.json")"
trib sim rail-2x4.conf all_reduce -g 2 -b 32M -e 32M -d bfloat16 --algo all --payload none -J "$tmp/c.json" >/dev/null 2>&1 || fail "the collective alone"
jq -e --slurpfile c "$tmp/c.json" '
    .collectives[0].hosts as $h | [$c[0].results[] | select(.algo == $h.algo and (.in_place | not)) | .time_us] | .[0] as $t |
    ($t / $h.time_us - 1 | fabs) < 0.01' "$tmp/1.json" >/dev/null || fail "tensor: $(jq .collectives[0] "$tmp/1.json"), alone $(jq '.results[] | {algo, time_us}' "$tmp/c.json")"

# what is beyond the sizes simulated lies on the line that longer ones lie on
jq -e '.collectives[] | select(.parallel == "data" and .collective == "reduce_scatter" and (.experts | not)) | .hosts.extrapolated_bytes' \
    "$tmp/1.json" >/dev/null || fail "nothing extrapolated: $(cat "$tmp/1.json")"
d=$(jq -r '.collectives[] | select(.parallel == "data" and .collective == "reduce_scatter" and (.experts | not)) | "\(.hosts.algo) \(.size_bytes)"' "$tmp/1.json")
trib sim rail-2x4.conf reduce_scatter -g 2 --algo "${d% *}" -b "${d#* }" -e "${d#* }" -d bfloat16 --payload none --place out -J "$tmp/d.json" >/dev/null 2>&1 ||
    fail "the long collective alone"
jq -e --slurpfile c "$tmp/d.json" '[.collectives[] | select(.parallel == "data" and .collective == "reduce_scatter" and (.experts | not))][0].hosts.time_us as $t |
    ($c[0].results[0].time_us / $t - 1 | fabs) < 0.01' "$tmp/1.json" >/dev/null ||
    fail "extrapolated $(jq .collectives "$tmp/1.json"), simulated $(jq '.results[0].time_us' "$tmp/d.json")"

# with four GPUs of a node on each layer its NVSwitches help
sed 's/tp = 2; dp = 2;/tp = 4; dp = 1;/' "$tmp/w.conf" >"$tmp/w4.conf"
trib sim rail-2x4.conf --workload "$tmp/w4.conf" --wide >"$tmp/4.out" 2>&1 || fail "tp 4: $(cat "$tmp/4.out")"
has 'tensor +all_reduce +4 +1 .* (ring|halving|direct) +[0-9.]+ +nvls +[0-9.]+ +nvls' "$tmp/4.out"
has 'NVSwitches instead of hosts: the step is 1\.[0-9]*[1-9]' "$tmp/4.out"
has 'Leaves, spines and cores too: the step is 1\.000 times' "$tmp/4.out"
has "own figure: 40.0 % of peak, a step of .* not accounted for -?[0-9.]+$" "$tmp/4.out"
has "Not modelled: attention's products over the sequence, [0-9.]+ % of the FLOPs" "$tmp/4.out"

# leaves and spines that do not reduce: the third row alone differs
sed 's/tp = 2; dp = 2; pp = 2; ep = 2; zero = 1;/tp = 8; dp = 4; zero = 0;/; s/ experts = 8;.* dense_layers = 4;//' "$tmp/w.conf" | sed "s/batch_tokens = 65536/batch_tokens = 16384/; s/sequence = 2048/sequence = 1024/" >"$tmp/w0.conf"
conf=$root/conf/rail-4x8.conf
sed 's/^reduce = .*/reduce = false;/; s/^gpu_nodes = {/gpu_nodes = { reduce = { groups = 64; slots = 16384; window = 256; };/' "$conf" >"$tmp/plain.conf"
trib sim "$conf" --workload "$tmp/w0.conf" -J "$tmp/with.json" >"$tmp/with.out" 2>&1 || fail "dp 4: $(cat "$tmp/with.out")"
trib sim "$tmp/plain.conf" --workload "$tmp/w0.conf" -J "$tmp/plain.json" >"$tmp/plain.out" 2>&1 || fail "plain: $(cat "$tmp/plain.out")"
jq -e --slurpfile p "$tmp/plain.json" 'def same(a; b): (a / b - 1 | fabs) < 1e-4;
    same(.hosts.step_us; $p[0].hosts.step_us) and same(.nvswitches.step_us; $p[0].nvswitches.step_us) and
    same($p[0].switches.step_us; $p[0].nvswitches.step_us) and .switches.step_us < 0.95 * $p[0].switches.step_us' \
    "$tmp/with.json" >/dev/null || fail "third row: $(cat "$tmp/with.out" "$tmp/plain.out")"

# eight groups at once on leaves that are oversubscribed 16:1: as long as all of them take in one simulation, and not as one alone
cat >"$tmp/over.conf" <<'CONF'
mtu = 4096; ecmp = "balanced";
leaf_spine = { leaves = 8; spines = 1; hosts_per_leaf = 8; host_link = { rate = "400Gb/s"; latency = "300ns"; };
               spine_link = { rate = "200Gb/s"; latency = "300ns"; }; };
CONF
cat >"$tmp/dp.conf" <<'CONF'
name = "dp"; device = "h100";
model = { layers = 4; d_model = 512; d_ff = 2048; heads = 8; vocabulary = 4096; };
training = { type = "bf16"; sequence = 512; batch_tokens = 16384; utilisation = "40%"; };
parallel = { tp = 8; dp = 8; zero = 0; microbatches = 4; };
CONF
trib sim "$tmp/over.conf" --workload "$tmp/dp.conf" -J "$tmp/dp.json" >"$tmp/dp.out" 2>&1 || fail "oversubscribed: $(cat "$tmp/dp.out")"
{
    echo 'jobs = ('
    for i in 0 1 2 3 4 5 6 7; do
        echo "$([ $i = 0 ] || echo ,){ name = \"g$i\"; hosts = \"h$i:h$((56 + i)):8\"; algorithm = \"ring\"; size = \"4MiB\"; type = \"bfloat16\"; repeat = 1; }"
    done
    echo ');'
} >"$tmp/groups.conf"
trib sim "$tmp/over.conf" --jobs "$tmp/groups.conf" --payload none -J "$tmp/groups.json" >"$tmp/groups.out" 2>&1 || fail "groups: $(cat "$tmp/groups.out")"
together=$(jq '.jobs[] | select(.name == "g7") | .time_us' "$tmp/groups.json")
jq -e --argjson t "$together" '[.collectives[] | select(.parallel == "data")][0].hosts as $h | $h.shared and $h.time_us >= $h.bound_us and
    ($h.time_us / $t - 1 | fabs) < 0.05' "$tmp/dp.json" >/dev/null || fail "together $together: $(cat "$tmp/dp.out" "$tmp/groups.out")"

# more replicas than the fabric holds
sed 's/ experts = 8;.* dense_layers = 4;//; s/dp = 2;/dp = 8;/; s/ep = 2;/order = [ "tp", "pp", "dp" ];/' "$tmp/w.conf" >"$tmp/w8.conf"
trib sim rail-2x4.conf --workload "$tmp/w8.conf" -J "$tmp/8.json" >"$tmp/8.out" 2>&1 || fail "dp 8: $(cat "$tmp/8.out")"
has 'The fabric has 8 of these GPUs' "$tmp/8.out"
jq -e '[.collectives[] | select(.parallel == "data" and (.experts | not))] | .[0].group == 8 and .[0].simulated_ranks == 2 and .[0].hosts.extrapolated_ranks' \
    "$tmp/8.json" >/dev/null || fail "dp 8: $(cat "$tmp/8.json")"

# seven eighths of the vector pass a member's link then, half of it in the group of two that stands for them
sed 's/dp = 8;/dp = 2;/; s/batch_tokens = 65536;/batch_tokens = 16384;/' "$tmp/w8.conf" >"$tmp/w2.conf"
trib sim rail-2x4.conf --workload "$tmp/w2.conf" -J "$tmp/2of8.json" >"$tmp/r.out" 2>&1 || fail "dp 2: $(cat "$tmp/r.out")"
jq -e --slurpfile w "$tmp/2of8.json" 'def dp: [.collectives[] | select(.collective == "reduce_scatter")][0].hosts.time_us;
    (dp / ($w[0] | dp) / 1.75 - 1 | fabs) < 0.001' "$tmp/8.json" >/dev/null || fail "dp 8 and 2: $(cat "$tmp/8.json" "$tmp/2of8.json")"

refuses() { # refuses TEXT ARG...
    local text=$1
    shift
    trib sim "$@" >"$tmp/r.out" 2>&1
    [ $? = 2 ] || fail "trib sim $*: expected exit code 2: $(cat "$tmp/r.out")"
    has "$text" "$tmp/r.out"
}
refuses 'found pipeline parallel groups whose GPUs are 4 apart, expected .* single-switch-4 has 4' single-switch-4.conf --workload "$tmp/w.conf"
cd "$tmp" || fail "cd"
refuses 'parallel groups whose GPUs are' rail-2x4.conf --workload workloads/llama3-70b.conf
cd - >/dev/null || fail "cd"
sed 's/microbatches = 4;/microbatches = 32768;/; s/batch_tokens = 65536;/batch_tokens = 68719476736L;/; s/pp = 2;/pp = 1024;/; s/layers = 8;/layers = 1024;/' "$tmp/w.conf" >"$tmp/long.conf"
refuses 'found 1024 stages of 32768 microbatches, expected at most' rail-2x4.conf --workload "$tmp/long.conf"
refuses 'no workload file' rail-2x4.conf --workload "$tmp/none.conf"
refuses 'found it with --trace' rail-2x4.conf --workload "$tmp/w.conf" --trace "$tmp/x"
refuses 'found it with all_gather' rail-2x4.conf all_gather --workload "$tmp/w.conf"
refuses 'found it with --algo' rail-2x4.conf --workload "$tmp/w.conf" -J "$tmp/x" --algo ring
sed -i 's/tp = 2;/tp = 3;/' "$tmp/w.conf"
refuses 'w.conf:' rail-2x4.conf --workload "$tmp/w.conf"
