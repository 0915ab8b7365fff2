#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Links that go down and come back under verbs programs, at dilation 1. A spine link: flows take the other spine. A host's only
# link: RC tries again, and goes on if the link is back before its retries are used up; if not, the program hears
# IBV_WC_RETRY_EXC_ERR, and the next one finds all as it was.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

frames() { trib link "$1" | sed -n 's/^leaf0:.*; \([0-9]*\) frames.*/\1/p'; }
grows() { [ "$(frames "$1")" -gt "$2" ]; }
link() { trib link "$@" >"$tmp/link.out" || fail "trib link $*"; }
# Whatever runs: the link goes down when frames have passed it, and is down for a while.
flap() { # flap LINK SECONDS
    local n
    n=$(frames "$1")
    until_true 20 grows "$1" $((n + 50)) || fail "no frames on $1"
    link "$1" down
    sleep "$2"
    link "$1" up
}
# 1.07 s a try, eight tries: perftest's -u
patient=18

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"

exact h4 h0 6 $patient &
job=$!
for s in 0 1 0; do # the flow goes by one or the other; each in turn is taken away
    n=$(frames leaf0-spine$((1 - s)))
    link leaf0-spine$s down
    until_true 10 grows leaf0-spine$((1 - s)) $((n + 50)) || fail "no frames by the other spine while leaf0-spine$s is down"
    trib status >"$tmp/status.out"
    has "^  link leaf0:[0-9]+-spine$s:[0-9]+: down" "$tmp/status.out"
    link leaf0-spine$s up
done
wait $job || fail "a flow that has another spine: $(cat "$tmp"/exact_*.out)"
[ "$(hca_count qp_errors)" = 0 ] || fail "a queue pair went to error"

exact h4 h0 3 $patient &
job=$!
flap h0-leaf0 0.3
wait $job || fail "a host's own link that was down for 0.3 s: $(cat "$tmp"/exact_*.out)"
[ "$(link_count 'dropped while down' h0-leaf0)" -gt 0 ] || fail "nothing was dropped while the link was down"
[ "$(hca_count timeouts)" -gt 0 ] || fail "no timeout"
[ "$(hca_count retransmits)" -gt 0 ] || fail "nothing was sent again"

for test in send_bw write_bw read_bw atomic_bw send_lat write_lat read_lat atomic_lat; do
    before=$(link_count 'dropped while down' h0-leaf0)
    pair h4 h0 ib_$test -x 0 -F -D 2 -u $patient &
    job=$!
    flap h0-leaf0 0.2
    wait $job || fail "ib_$test over a link that was down for 0.2 s"
    [ "$(link_count 'dropped while down' h0-leaf0)" -gt "$before" ] || fail "ib_$test: nothing was dropped"
done

# Down for good: eight tries of 67 ms.
(exact h4 h0 20 14) >"$tmp/gone.out" 2>&1 &
job=$!
n=$(frames h0-leaf0)
until_true 20 grows h0-leaf0 $((n + 50)) || fail "no frames on h0-leaf0"
link h0-leaf0 down
wait $job && fail "a program over a link that is down for good succeeded"
has 'transport retry counter exceeded' "$tmp/exact_client.out"
link h0-leaf0 up
pair h4 h0 ibv_rc_pingpong -g 0 -n 100 -c
trib down >/dev/null

# Aggregation: a host's only link that comes back soon takes time and nothing else.
trib up "$conf/leaf-spine-8.conf" --dilation 100 >/dev/null || fail "no fabric at dilation 100"
perf_ok blip -b 1M -e 1M -n 150 --algo sharp --policy sharp --max-wall 300 &
job=$!
flap h0-leaf0 0.2
wait $job || fail "SHARP while a host's own link was down for 0.2 s"
[ "$(link_count 'dropped while down' h0-leaf0)" -gt 0 ] || fail "nothing of SHARP was dropped"
has_not 'goes on|gone on|fell back' "$tmp/blip.out"
trib down >/dev/null

# Between processes: those that have no end of the link lead around it too.
trib up "$conf/leaf-spine-8-procs.conf" --dilation 1 >/dev/null || fail "no fabric of processes"
for s in 0 1; do
    link leaf0-spine$s down
    pair h4 h0 ibv_rc_pingpong -g 0 -n 200 -c
    pair h0 h4 ibv_rc_pingpong -g 0 -n 200 -c
    link leaf0-spine$s up
done
link leaf0-spine0
has_not down "$tmp/link.out"
