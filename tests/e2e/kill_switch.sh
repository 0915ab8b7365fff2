#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every rank names a trib-switch that dies, within 10 s; a job of hosts that are not next to it goes on; trib down clears the remains. A job that
# starts without a spine sums in the trees of the others.
# tier: core
. "$(dirname "$0")/lib.sh"

name=leaf-spine-8-procs
trib up "$conf/$name.conf" >/dev/null || fail "no fabric"
TRIB_RUN=$run/$name "$TRIB_BUILD/trib-perf" "$conf/$name.conf" -b 1M -e 1M -n 1000000 -w 0 --max-wall 3600 >"$tmp/perf.out" 2>&1 &
perf=$!
busy() { [ "$(total rx_frames)" -gt 20000 ]; }
until_true 30 busy || fail "the run did not get under way"
kill -9 "$(pids_in "$run/$name/proc/leaf1.pid")"
t0=$(date +%s%N)
wait $perf && fail "exit code 0 although a switch was killed"
took=$((($(date +%s%N) - t0) / 1000000))
[ $took -lt 10000 ] || fail "took $took ms to end"
[ "$(grep -cE 'rank [0-9] \(h[0-9]\): trib-switch leaf1 \(pid [0-9]+, nodes .*leaf1.*\) has died' "$tmp/perf.out")" = 8 ] ||
    fail "not every rank named the switch"
trib status >"$tmp/status.out"
has 'trib-switch leaf1: dead' "$tmp/status.out"
trib down >/dev/null || fail "down"
[ -e "$run" ] && fail "down left $run"
trib perf "$conf/$name.conf" -g 4 -b 4K -e 4K -n 1 >"$tmp/next.out" 2>&1 || fail "the fabric does not come up again"

trib up "$conf/$name.conf" >/dev/null || fail "no fabric"
TRIB_RUN=$run/$name "$TRIB_BUILD/trib-perf" "$conf/$name.conf" -g 4 --algo sharp -b 1M -e 1M -n 40 -w 0 --max-wall 8 >"$tmp/below.out" 2>&1 &
perf=$!
until_true 20 busy || fail "the run of four hosts did not get under way"
kill -9 "$(pids_in "$run/$name/proc/leaf1.pid")"
wait $perf || fail "leaf1 was killed, and a job of the hosts below leaf0 ended with $?"
has 'trib-switch leaf1 \(pid [0-9]+, nodes .*leaf1.*\) has died: killed by signal 9 \(Killed\); the job continues' "$tmp/below.out"
has 'Out of bounds values : 0 OK' "$tmp/below.out"
has_not 'Fell back' "$tmp/below.out"
trib down >/dev/null

trib up "$conf/$name.conf" >/dev/null || fail "no fabric"
kill -9 "$(pids_in "$run/$name/proc/spine0.pid")"
perf_ok without --algo sharp -b 64K -e 64K -n 3
has 'Aggregation: .*on 1 of 2 trees because spine0 has no link to leaf[01]' "$tmp/without.out"
has_not 'fell back' "$tmp/without.out"
