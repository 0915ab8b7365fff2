#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes of h6 and h7 try to end the SHARP job of h0 to h5: by PEER_DOWN in the names of its hosts, by its own datagrams, captured
# and sent again, and by LEAVE, ABORT and the failure of a rank, with the group's id and key. It stays on SHARP, and exact.
. "$(dirname "$0")/../e2e/lib.sh"
attack=$TRIB_BUILD/tests/hostile
exec_on() { timeout 20 "$root/scripts/trib" exec "$1" -- "${@:2}"; }

trib up "$conf/leaf-spine-8.conf" --dilation 2000 >/dev/null || fail "no fabric"
log=$(echo "$run"/leaf-spine-8/proc/*.log)
"$root/scripts/trib" capture h0-leaf0 -o "$tmp/job.pcap" -t 30 >"$tmp/capture.out" 2>&1 &
capture=$!
until_true 10 grep -q capturing "$tmp/capture.out" || fail "no capture: $(cat "$tmp/capture.out")"
perf_ok job --algo sharp -g 6 -b 256K -e 256K -n 100000 --max-wall 11 &
job=$!
busy() { [ "$(total rx_frames)" -gt 2000 ]; }
until_true 20 busy || fail "the job did not get under way"
kill -TERM $capture
wait $capture || fail "the capture"
exec_on h7 "$attack/peer_down" 2 h0 h1 h2 h3 h4 h5 >"$tmp/attack.out" 2>&1 || fail "attacker: $(tail -n 1 "$tmp/attack.out")"
has '^sent [1-9]' "$tmp/attack.out"
exec_on h6 "$attack/replay" "$tmp/job.pcap" 2 >"$tmp/replay.out" 2>&1 || fail "attacker: $(tail -n 2 "$tmp/replay.out")"
has '^sent [1-9][0-9]*, of [1-9]' "$tmp/replay.out"
wait $job || fail "the job of the other hosts"
has_not 'fell back' "$tmp/job.out"
has 'h7\.0\.[0-9]+: a frame was dropped: .*foreign_' "$log"
has 'h6\.0\.[0-9]+: a frame was dropped: .*foreign_' "$log"
has 'datagram of h6\.0\.0 .* dropped: not sealed by a rank of this job' "$tmp/job.out"
has "datagram of h6\\.0\\.0 .* dropped: in a switch's name, from another sender" "$tmp/job.out"
trib status >"$tmp/status.out"
has 'offender h6\.0\.0 ' "$tmp/status.out"
has 'offender h7\.0\.0 ' "$tmp/status.out"
