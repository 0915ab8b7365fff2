#!/usr/bin/env bash
# A verbs program that is stopped in the middle of traffic holds its host back for half a second and no longer: others on that
# host, and on the fabric, go on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
next_port
"$root/scripts/trib" exec h0 -- ib_send_bw -x 0 -F -c UC -D 30 -p $port >"$tmp/stopped.out" 2>&1 &
stopped=$!
until_true 10 listens || fail "no server"
"$root/scripts/trib" exec h4 -- ib_send_bw -x 0 -F -c UC -D 30 -p $port 127.0.0.1 >"$tmp/sender.out" 2>&1 &
sender=$!
moving() { [ "$(total rx_frames)" -gt 20000 ]; }
until_true 10 moving || fail "no traffic"
kill -STOP "$(pgrep -P $stopped ib_send_bw || echo $stopped)"
dropping() { [ "$(total drop_slot_stalled)" -gt 0 ]; }
until_true 10 dropping || fail "frames still wait for a stopped process: $(trib status)"
pair h0 h1 ibv_rc_pingpong -g 0 -n 300 -c
pair h4 h5 ibv_rc_pingpong -g 0 -n 300 -c
kill -KILL $stopped $sender $(pgrep -P $stopped) $(pgrep -P $sender) 2>/dev/null
wait 2>/dev/null
pair h0 h4 ib_write_bw -x 0 -F -n 300
