#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that is killed in mid-run is named by every other rank within 10 s, nothing hangs, no process is left, and the fabric serves
# the next run. KILLS=200 makes it a campaign.
. "$(dirname "$0")/lib.sh"

trib up "$conf/leaf-spine-8.conf" >/dev/null || fail "no fabric"
switch=$(pids_in "$run"/leaf-spine-8/proc/*.pid)

for ((i = 0; i < ${KILLS:-3}; i++)); do
    algo=$([ $((i % 2)) = 0 ] && echo sharp || echo ring)
    out=$tmp/kill$i.out
    TRIB_RUN=$run/leaf-spine-8 "$TRIB_BUILD/trib-perf" "$conf/leaf-spine-8.conf" --algo $algo \
        -b 1M -e 1M -n 1000000 -w 0 --max-wall 3600 >"$out" 2>&1 &
    perf=$!
    before=$(total rx_frames)
    busy() { [ "$(total rx_frames)" -gt $((before + 20000)) ]; }
    until_true 30 busy || fail "the run did not get under way: $(cat "$out")"
    victim=$(ranks $perf | sed -n "$((i % 8 + 1))p")
    kill -9 "$victim" || fail "no rank to kill"
    t0=$(date +%s%N)
    wait $perf && fail "exit code 0 although a rank was killed"
    took=$((($(date +%s%N) - t0) / 1000000))
    [ $took -lt 10000 ] || fail "the others took $took ms to end"
    [ "$(grep -cE "rank [0-9] \(h[0-9]\): rank $((i % 8)) \(h$((i % 8)), pid $victim\) was killed by signal 9" "$out")" = 7 ] ||
        fail "not every other rank named it: $(cat "$out")"
    ranks $perf && fail "a rank is left over"
    [ "$(pids_in "$run"/leaf-spine-8/proc/*.pid)" = "$switch" ] && kill -0 "$switch" || fail "the switch is gone"
done
perf_ok next -b 64K -e 64K -n 2
