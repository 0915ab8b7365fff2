#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Congestion in real time: three hosts write to a fourth as fast as they can. Queues mark, the receiver notifies, senders slow
# down, ports pause, and not one frame is dropped or sent again; a notification on the wire has a right ICRC.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

# incast CONF: three ib_write_bw into h0; counters stay in the run directory
incast() {
    local i servers=() clients=() cap
    trib up "$1" >"$tmp/up.out" 2>&1 || fail "no fabric: $(cat "$tmp/up.out")"
    "$root/scripts/trib" capture h0-switch0 -o "$tmp/x.pcap" -t 30 >"$tmp/capture.out" 2>&1 &
    cap=$!
    until_true 10 grep -q capturing "$tmp/capture.out" || fail "capture did not start: $(cat "$tmp/capture.out")"
    for i in 1 2 3; do
        next_port
        timeout 60 "$root/scripts/trib" exec h0 -- ib_write_bw -x 0 -F -s 65536 -n 1500 -p $port >"$tmp/server$i.out" 2>&1 &
        servers+=($!)
        until_true 10 listens || fail "ib_write_bw does not listen"
        timeout 60 "$root/scripts/trib" exec "h$i" -- ib_write_bw -x 0 -F -s 65536 -n 1500 -p $port 127.0.0.1 >"$tmp/client$i.out" 2>&1 &
        clients+=($!)
    done
    for i in "${clients[@]}" "${servers[@]}"; do wait "$i" || fail "ib_write_bw: $(tail -n 3 "$tmp"/client?.out "$tmp"/server?.out)"; done
    kill -TERM $cap 2>/dev/null
    wait $cap || fail "capture ended with $?"
    trib status >"$tmp/status.out"
    # Only a notification can be lost: one that arrives after its program has ended.
    grep -vE 'drop_(no_slot|detached):' "$tmp/status.out" >"$tmp/lost.out"
    has_not 'drop_|overflow|watchdog_trips' "$tmp/lost.out"
    [ "$(hca_count retransmits)" = 0 ] || fail "$(hca_count retransmits) packets were sent again"
    [ "$(total pauses_sent)" -gt 0 ] || fail "nobody paused: $(cat "$tmp/status.out")"
    [ "$(total paused_us)" -gt 0 ] || fail "nobody waited"
    [ "$(total peak_lossless_bytes)" -gt 20000 ] || fail "no queue"
    echo "$(basename "$1"): $(total ecn_marks) marks, $(hca_count cnps_sent) notifications sent, $(hca_count cnps_received) received," \
        "$(hca_count rate_cuts) cuts, $(total pauses_sent) pauses, $(total paused_us) us of waiting"
}

sed '/^dcqcn/d; s/ecn[a-z_]* *= [^;]*;//g' "$root/tests/e2e/confs/incast-3.conf" >"$tmp/pfc.conf"
incast "$tmp/pfc.conf"
[ "$(total ecn_marks)" = 0 ] && [ "$(hca_count cnps_sent)" = 0 ] || fail "marks and notifications without any of them asked for"
trib down >/dev/null

incast "$root/tests/e2e/confs/incast-3.conf"
[ "$(total ecn_marks)" -gt 0 ] || fail "no marks"
[ "$(hca_count ce_marks)" -gt 0 ] || fail "marks do not arrive"
[ "$(hca_count cnps_sent)" -gt 0 ] && [ "$(hca_count cnps_received)" -gt 0 ] || fail "no notifications"
[ "$(hca_count rate_cuts)" -gt 0 ] || fail "nobody slowed down"
if command -v tshark >/dev/null; then # class selector 6, not ECT, 74 bytes
    tshark -r "$tmp/x.pcap" -Y 'infiniband.bth.opcode == 0x81' -T fields -e ip.dsfield.dscp -e ip.dsfield.ecn -e frame.len >"$tmp/cnp.out" 2>/dev/null
    [ -s "$tmp/cnp.out" ] || fail "no notification among the frames"
    [ "$(sort -u "$tmp/cnp.out")" = $'48\t0\t74' ] || fail "other notifications than expected: $(sort -u "$tmp/cnp.out")"
    tshark -r "$tmp/x.pcap" -Y '_ws.malformed && infiniband.bth.opcode == 0x81' >"$tmp/malformed.out" 2>/dev/null
    has_not . "$tmp/malformed.out"
fi
"$TRIB_BUILD/tests/tools/icrc_check" "$tmp/x.pcap" >"$tmp/icrc.out" 2>&1 || fail "ICRC: $(cat "$tmp/icrc.out")"
cat "$tmp/icrc.out"
trib down >/dev/null

# A receiver that accepts nothing pauses its switch until its NIC drops its frames (100 ms). The watchdog uses wall time: 40 ms, at
# dilation 200 too.
sed 's/^pfc_watchdog.*/pfc_watchdog = "40ms";/; /^dcqcn/d' "$root/tests/e2e/confs/incast-3.conf" >"$tmp/watchdog.conf"
trib up "$tmp/watchdog.conf" >"$tmp/up.out" 2>&1 || fail "no fabric: $(cat "$tmp/up.out")"
for i in 1 2 3; do
    next_port
    timeout 60 "$root/scripts/trib" exec h0 -- ib_write_bw -x 0 -F -s 65536 -D 30 -p $port >"$tmp/server$i.out" 2>&1 &
    until_true 10 listens || fail "ib_write_bw does not listen"
    timeout 60 "$root/scripts/trib" exec "h$i" -- ib_write_bw -x 0 -F -s 65536 -D 30 -p $port 127.0.0.1 >"$tmp/client$i.out" 2>&1 &
done
busy() { [ "$(total tx_bytes)" -gt 20000000 ]; }
until_true 20 busy || fail "nobody sends"
for p in $(own_processes); do
    [ "$(cat "/proc/$p/comm" 2>/dev/null)" = ib_write_bw ] && grep -qszx TRIB_HOST=h0 "/proc/$p/environ" && kill -STOP "$p"
done
tripped() { [ "$(total watchdog_trips)" -gt 0 ] && [ "$(total drop_pfc_watchdog)" -gt 0 ]; }
until_true 15 tripped || fail "the watchdog sleeps: $(trib status)"
grep -q 'PFC watchdog: switch0:0 (h0:0-switch0:0): paused without progress' "$run"/*/proc/*.log || fail "nobody names the queue"
echo "watchdog: $(total watchdog_trips) found stuck, $(total drop_pfc_watchdog) frames dropped"
