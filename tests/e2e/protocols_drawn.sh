#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# Drawn fabrics of one switch to three leaves, 1:1 to 8:1: without loss protocols resend nothing, and take what their formulas say, within
# 5 % or what the row says. DRAWS: how many, SEED: of the first.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

pick() { eval "picked=\${$((RANDOM % $# + 1))}"; }
for seed in $(seq "${SEED:-1}" $((${SEED:-1} + ${DRAWS:-4} - 1))); do
    RANDOM=$seed
    pick 1 2 3; leaves=$picked
    pick 2 3 4; hosts=$picked
    pick 1 2; spines=$picked
    pick 100 200 400; rate=$picked
    pick 1 2 4 8; over=$picked
    pick 100 300 600; latency=$picked
    fabric="leaf_spine = { leaves = $leaves; spines = $spines; hosts_per_leaf = $hosts; host_link = { rate = \"${rate}Gb/s\"; latency = \"${latency}ns\"; };
    spine_link = { rate = \"$((hosts * rate * 1000 / over / spines))Mb/s\"; latency = \"${latency}ns\"; }; };"
    echo "ecmp = \"balanced\"; $fabric reduce = { };" >"$tmp/drawn.conf"
    trib sim "$tmp/drawn.conf" --algo switchml,ps,atp -d int32 -b 16K -e 1M -f 64 -w 0 -n 1 --place out -J "$tmp/drawn.json" >"$tmp/sim.out" 2>&1 ||
        fail "seed $seed: $(cat "$tmp/sim.out")"
    jq -e '[.results[] | select(.wrong != 0 or .protocol.resent != 0 or
            ((.time_us / .predicted_us - 1) * 100 | fabs) > (.predicted_within_percent // 5))] | length == 0' "$tmp/drawn.json" >"$tmp/jq.out" ||
        fail "seed $seed: $fabric $(jq -c '.results[] | [.algo, .size_bytes, .time_us, .predicted_us, .predicted_within_percent, .protocol.resent]' "$tmp/drawn.json")"
    jq '.results[] | select(.predicted_within_percent == null) | .algo' "$tmp/drawn.json" >>"$tmp/strict"
done
# Long vectors of the parameter server, and all of SwitchML, are within 5 %.
[ "$(grep -c switchml "$tmp/strict")" -ge $((2 * ${DRAWS:-4})) ] && grep -q ps "$tmp/strict" || fail "no formula holds within 5 %: $(sort "$tmp/strict" | uniq -c)"
