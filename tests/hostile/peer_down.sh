#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process of h7 says in the name of h0 to h5 that their processes have ended. Their job stays on SHARP, and exact.
. "$(dirname "$0")/../e2e/lib.sh"
attack=$TRIB_BUILD/tests/hostile

trib up "$conf/leaf-spine-8.conf" --dilation 2000 >/dev/null || fail "no fabric"
perf_ok job --algo sharp -g 6 -b 256K -e 256K -n 100000 --max-wall 8 &
job=$!
busy() { [ "$(total rx_frames)" -gt 2000 ]; }
until_true 20 busy || fail "the job did not get under way"
timeout 20 "$root/scripts/trib" exec h7 -- "$attack/peer_down" 2 h0 h1 h2 h3 h4 h5 >"$tmp/attack.out" 2>&1 ||
    fail "attacker: $(tail -n 1 "$tmp/attack.out")"
has '^sent [1-9]' "$tmp/attack.out"
wait $job || fail "the job of the other hosts"
has_not 'fell back' "$tmp/job.out"
has 'h7\.0\.[0-9]+: a frame was dropped: .*foreign_' "$(echo "$run"/leaf-spine-8/proc/*.log)"
trib status >"$tmp/status.out"
has 'offender h7\.0\.[0-9]+ (is shut|was shut|sent)' "$tmp/status.out"
