#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A verbs program that is stopped in the middle of traffic holds its host back for a tenth of a second and no longer: others on that
# host, and on the fabric, go on. One that is stopped and continued all the time does so for a small share of the time.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

# For how long the link to h0 has been paused, in ms.
paused() {
    "$TRIB_BUILD/trib-telemetry" "$run/leaf-spine-8" /trib/ports,leaf0:0 | tr ',{' '\n\n' |
        awk -F: '/egress_paused_us/ { print int($2 / 1000) }'
}

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
next_port
"$root/scripts/trib" exec h0 -- ib_send_bw -x 0 -F -c UC -D 30 -p $port >"$tmp/stopped.out" 2>&1 &
stopped=$!
until_true 10 listens || fail "no server"
"$root/scripts/trib" exec h4 -- ib_send_bw -x 0 -F -c UC -D 30 -p $port 127.0.0.1 >"$tmp/sender.out" 2>&1 &
sender=$!
moving() { [ "$(total rx_frames)" -gt 20000 ]; }
until_true 10 moving || fail "no traffic"
server=$(pgrep -P $stopped ib_send_bw || echo $stopped)
before=$(paused)
kill -STOP "$server"
dropping() { [ "$(total drop_slot_stalled)" -gt 0 ]; }
until_true 10 dropping || fail "frames still wait for a stopped process: $(trib status)"
sleep 0.5
held=$(($(paused) - before))
[ $held -lt 300 ] || fail "a stopped process held its host back for $held ms, expected 100"
pair h0 h1 ibv_rc_pingpong -g 0 -n 300 -c
# Runs for a twentieth of the time, in which it takes what there is.
before=$(paused)
for _ in 1 2 3 4 5 6; do
    kill -CONT "$server"
    sleep 0.02
    kill -STOP "$server"
    sleep 0.4
done
held=$(($(paused) - before))
[ $held -lt 1000 ] || fail "a process that is stopped and continued held its host back for $held of 2,500 ms"
echo "held back for $held of 2,500 ms"
pair h0 h1 ibv_rc_pingpong -g 0 -n 300 -c
"$TRIB_BUILD/trib-telemetry" "$run/leaf-spine-8" /trib/links,h0.0.0 >"$tmp/slot.out"
has '"drop_slot_stalled": [1-9]' "$tmp/slot.out"
pair h4 h5 ibv_rc_pingpong -g 0 -n 300 -c
kill -KILL $stopped $sender $(pgrep -P $stopped) $(pgrep -P $sender) 2>/dev/null
wait 2>/dev/null
pair h0 h4 ib_write_bw -x 0 -F -n 300
