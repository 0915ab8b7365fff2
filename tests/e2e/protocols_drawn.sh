#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# Drawn fabrics of one switch to three leaves, 1:1 to 8:1, and GPUs that notice packets at once or late: without loss protocols resend nothing, and take what their formulas say within
# 5 %, in few blocks too. DRAWS: how many, SEED: of the first.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

pick() { eval "picked=\${$((RANDOM % $# + 1))}"; }
# Operations that follow each other at once overlap: a rank begins the next one while others wait for results of the last.
in_a_row() { # in_a_row WHAT: of $tmp/drawn.conf, $ops of them
    trib sim "$tmp/drawn.conf" --algo ps,atp -d int32 -b 1K -e 64K -f 8 -w 0 -n "$ops" --place out -J "$tmp/row.json" >"$tmp/row.out" 2>&1 || fail "$1: $(cat "$tmp/row.out")"
    jq -e '[.results[] | select((.time_us / .predicted_us - 1 | fabs) > ([.predicted_within_percent, 5] | max) / 100)] == []' "$tmp/row.json" >/dev/null ||
        fail "$1, $ops operations: $(jq -c '.results[] | [.algo, .size_bytes, .time_us, .predicted_us, .predicted_within_percent]' "$tmp/row.json")"
}
gpus=(0us 100ns 500ns 2us 5us 20us)
for seed in $(seq "${SEED:-1}" $((${SEED:-1} + ${DRAWS:-4} - 1))); do
    RANDOM=$seed
    pick 1 2 3; leaves=$picked
    pick 2 3 4; hosts=$picked
    pick 1 2; spines=$picked
    pick 100 200 400; rate=$picked
    pick 1 2 4 8; over=$picked
    pick 100 300 600; latency=$picked
    gpu=${gpus[seed % ${#gpus[@]}]}
    fabric="costs = { gpu = \"$gpu\"; }; leaf_spine = { leaves = $leaves; spines = $spines; hosts_per_leaf = $hosts; host_link = { rate = \"${rate}Gb/s\"; latency = \"${latency}ns\"; };
    spine_link = { rate = \"$((hosts * rate * 1000 / over / spines))Mb/s\"; latency = \"${latency}ns\"; }; };"
    echo "ecmp = \"balanced\"; $fabric reduce = { };" >"$tmp/drawn.conf"
    trib sim "$tmp/drawn.conf" --algo switchml,ps,atp -d int32 -b 16K -e 1M -f 64 -w 0 -n 1 --place out -J "$tmp/drawn.json" >"$tmp/sim.out" 2>&1 ||
        fail "seed $seed: $(cat "$tmp/sim.out")"
    jq -e '[.results[] | select(.wrong != 0 or .protocol.resent != 0 or
            (.time_us / .predicted_us - 1 | fabs) > 0.05)] | length == 0' "$tmp/drawn.json" >"$tmp/jq.out" ||
        fail "seed $seed: $fabric $(jq -c '.results[] | [.algo, .size_bytes, .time_us, .predicted_us, .predicted_within_percent, .protocol.resent]' "$tmp/drawn.json")"
    pick 2 3 4 7 20; ops=$picked
    in_a_row "seed $seed: $fabric"
done
echo "ecmp = \"balanced\"; single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; }; reduce = { };" >"$tmp/drawn.conf"
ops=4
in_a_row "two hosts"

# costs.gpu: a rank notices a packet so much after it has come, in each round of its window, and waits for that before it sends again.
# costs.hca: a rank's HCA fetches a packet in 100 ns, which is longer than a link has it.
# ecmp = "hash" is not modelled, and rows of protocols whose packets go from rank to rank say so.
row() { # row ECMP COSTS FILTER
    echo "ecmp = \"$1\"; $2 leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 4; host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; };
        spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; }; reduce = { };" >"$tmp/row.conf"
    trib sim "$tmp/row.conf" --algo switchml,ps,atp -d int32 -b 64K -e 512K -f 8 -w 0 -n 1 --place out -J "$tmp/row.json" >"$tmp/row.out" 2>&1 ||
        fail "$1 $2: $(cat "$tmp/row.out")"
    jq -e "$3" "$tmp/row.json" >/dev/null || fail "$1 $2: $(jq -c '.results[] | [.algo, .size_bytes, .time_us, .predicted_us, .predicted_paths]' "$tmp/row.json")"
}
row balanced 'costs = { hca = "100ns"; };' '[.results[] | select((.time_us / .predicted_us - 1 | fabs) > 0.05 or .predicted_paths)] == []'
row balanced 'costs = { gpu = "20us"; };' '[.results[] | select((.time_us / .predicted_us - 1 | fabs) > 0.05 or .protocol.resent != 0)] == []'
row balanced 'costs = { gpu = "1us"; network = { step = "2us"; }; };' '[.results[] | select((.time_us / .predicted_us - 1 | fabs) > 0.05)] == []'
row balanced 'costs = { network = { step = "14us"; ll = { step = "2.7us"; rate = "12.5GB/s"; }; }; };' '[.results[] | select((.time_us / .predicted_us - 1 | fabs) > 0.05)] == []'
row hash '' '[.results[] | select((.predicted_paths == "balanced") != (.algo != "switchml"))] == []'
has "paths are those of ecmp = .balanced." "$tmp/row.out"
