#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sixteen idle verbs programs on one fabric, two a host, each with a connected queue pair and waiting for an event, use under 10 % of one
# core in all, with the process that runs the switches and NICs.
. "$(dirname "$0")/lib.sh"
idle=$TRIB_BUILD/tests/tools/verbs_idle

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
pids=()
for i in 0 1 2 3 4 5 6 7; do # h0 and h4, h1 and h5 ...: over leaf, spine, leaf
    trib exec h$((i % 8)) -- "$idle" listen $((port + i)) >"$tmp/a$i.out" 2>&1 &
    pids+=($!)
    trib exec h$(((i + 4) % 8)) -- "$idle" connect $((port + i)) >"$tmp/b$i.out" 2>&1 &
    pids+=($!)
done
all_idle() { [ "$(cat "$tmp"/[ab]?.out | grep -c '^idle$')" = 16 ]; }
until_true 60 all_idle || fail "programs did not come up: $(cat "$tmp"/[ab]?.out)"
sleep 1

# Of the fabric and of the programs with whatever runs them, all threads.
tree() {
    local p
    for p in "$@"; do
        echo "$p"
        # shellcheck disable=SC2046
        tree $(pgrep -P "$p")
    done
}
# shellcheck disable=SC2046,SC2207
measured=($(pids_in "$run"/leaf-spine-8/proc/*.pid) $(tree "${pids[@]}"))
# Microseconds on a CPU: exact where the kernel keeps them, else ticks, which see little of what runs briefly.
spent() {
    local p f sum=0 hz
    hz=$(getconf CLK_TCK)
    for p in "${measured[@]}"; do
        if [ -r "/proc/$p/schedstat" ]; then
            for f in "/proc/$p"/task/*/schedstat; do
                sum=$((sum + $(awk '{ print int($1 / 1000) }' "$f")))
            done
        else
            sum=$((sum + $(awk -v hz="$hz" '{ sub(/.*\) /, ""); print ($12 + $13) * 1000000 / hz }' "/proc/$p/stat")))
        fi
    done
    echo $sum
}
seconds=10
before=$(spent)
sleep $seconds
used=$(($(spent) - before))
all_idle || fail "a program has ended"
[ "${#measured[@]}" -ge 17 ] || fail "expected the switch and sixteen programs, found ${#measured[@]} processes"
echo "16 idle verbs programs and the fabric: $used us in $seconds s, $((used / seconds / 1000)) per mille of a core"
[ $used -lt $((seconds * 100000)) ] || fail "idle programs use $used us in $seconds s, expected under 10 % of a core"
