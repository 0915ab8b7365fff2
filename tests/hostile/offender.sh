#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process of h7 sends thousands of forged frames: its slot is shut, status and log say whose and why, the host's other process goes
# on, and trib link opens it again. One that starts over in slot after slot shuts the port.
. "$(dirname "$0")/../e2e/lib.sh"
attack=$TRIB_BUILD/tests/hostile/addresses
exec_on() { timeout 60 "$root/scripts/trib" exec "$1" -- "${@:2}"; }

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
log=$(echo "$run"/leaf-spine-8/proc/*.log)

# Two innocent processes, one of them of the same host.
exec_on h0 "$TRIB_BUILD/tests/tools/verbs_idle" listen $port >"$tmp/listen.out" 2>&1 &
exec_on h7 "$TRIB_BUILD/tests/tools/verbs_idle" connect $port >"$tmp/connect.out" 2>&1 &
for side in listen connect; do
    until_true 10 grep -q idle "$tmp/$side.out" || fail "no connection: $(cat "$tmp/$side.out")"
done

exec_on h7 "$attack" offend h1 h0 >"$tmp/offend.out" 2>&1 &
offender=$!
until_true 15 grep -q shut "$tmp/offend.out" || fail "the offender: $(cat "$tmp/offend.out")"
has '^shut, slot 1' "$tmp/offend.out"
has 'h7\.0\.1: its slot is shut: 1000 frames within a second .*foreign_mac.*trib link h7-leaf1 up opens it' "$log"
lines=$(grep -c 'h7\.0\.1: a frame was dropped' "$log")
[ "$lines" -ge 1 ] && [ "$lines" -le 5 ] || fail "$lines lines about dropped frames, expected one a second"
trib status >"$tmp/status.out"
has 'offender h7\.0\.1 is shut: 1000 frames that it may not send: foreign_mac' "$tmp/status.out"
has 'drop_foreign_mac: 1000$' "$tmp/status.out"

# The host's other slots are not shut.
next_port
exec_on h0 ibv_rc_pingpong -g 0 -p $port -n 100 >"$tmp/pong.out" 2>&1 &
pong=$!
until_true 10 listens || fail "ibv_rc_pingpong does not listen"
exec_on h7 ibv_rc_pingpong -g 0 -p $port -n 100 127.0.0.1 >"$tmp/ping.out" 2>&1 || fail "another process of the host: $(cat "$tmp/ping.out")"
wait $pong || fail "its peer"

trib link h7-leaf1 up >"$tmp/link.out" 2>&1 || fail "trib link: $(cat "$tmp/link.out")"
wait $offender || fail "the offender: $(cat "$tmp/offend.out")"
has '^opened' "$tmp/offend.out"
trib status >"$tmp/status.out"
has_not 'is shut|was shut' "$tmp/status.out"

for i in 1 2 3 4; do
    exec_on h7 "$attack" offend h1 h0 >"$tmp/again$i.out" 2>&1 &
    last=$!
    until_true 15 grep -q shut "$tmp/again$i.out" || fail "again: $(cat "$tmp/again$i.out")"
done
trib status >"$tmp/status.out"
has 'offender h7\.0 is shut for all processes; trib link h7-leaf1 up opens it' "$tmp/status.out"
has 'and with it the port' "$log"
has_not 'an event|error' "$tmp/listen.out"
kill $last 2>/dev/null
true
