#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo fabric with eight idle agents (verbs programs with a device open and queue pairs made) uses under 5 % of one core.
. "$(dirname "$0")/lib.sh"
command -v ibv_rc_pingpong >/dev/null || skip "no ibv_rc_pingpong"

trib up "$conf/leaf-spine-8.conf" >/dev/null || fail "no fabric"
pids=()
for h in 0 1 2 3 4 5 6 7; do
    next_port
    trib exec h$h -- stdbuf -oL ibv_rc_pingpong -g 0 -p $port >"$tmp/h$h.out" 2>&1 &
    pids+=($!)
done
opened() { [ "$(cat "$tmp"/h?.out | grep -c 'local address')" = 8 ]; }
until_true 20 opened || fail "agents did not come up: $(cat "$tmp"/h?.out)"
sleep 1

ticks() { # of the switch and the agents, all threads
    local p sum=0
    for p in $(pids_in "$run"/leaf-spine-8/proc/*.pid) "${pids[@]}"; do
        sum=$((sum + $(awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$p/stat")))
    done
    echo $sum
}
before=$(ticks)
sleep 5
used=$(($(ticks) - before))
hz=$(getconf CLK_TCK)
echo "$used ticks of $((5 * hz)) in 5 s: $((used * 1000 / (5 * hz))) per mille of a core"
[ $((used * 100)) -lt $((5 * 5 * hz)) ] || fail "idle fabric uses $used of $((5 * hz)) ticks"
