#!/usr/bin/env bash
# Frames captured on a link are RoCE v2 to Wireshark, none malformed, and their ICRCs are right by zlib's CRC.
. "$(dirname "$0")/lib.sh"
command -v tshark >/dev/null || skip "no tshark"

trib up "$conf/leaf-spine-8.conf" --dilation 1000 >/dev/null || fail "no fabric"
"$root/scripts/trib" capture h0-leaf0 -o "$tmp/x.pcap" -t 8 >"$tmp/capture.out" 2>&1 &
cap=$!
until_true 10 grep -q capturing "$tmp/capture.out" || fail "capture did not start: $(cat "$tmp/capture.out")"
perf_ok traffic -b 4K -e 64K -f 16 -n 2
kill -TERM $cap 2>/dev/null
wait $cap || fail "capture ended with $?"
has "[0-9]{2,} frames in" "$tmp/capture.out"
trib capture nowhere -o "$tmp/y.pcap" >"$tmp/refused.out" 2>&1 && fail "captured a link that is not there"
has "nowhere" "$tmp/refused.out"
tshark -r "$tmp/x.pcap" -T fields -e frame.protocols -e _ws.malformed >"$tmp/frames.out" 2>/dev/null || fail "tshark"
[ "$(grep -c 'udp:infiniband' "$tmp/frames.out")" -gt 50 ] || fail "too few RoCE v2 frames"
[ "$(grep -vc 'udp:infiniband\|igmp\|arp' "$tmp/frames.out")" = 0 ] || fail "frames of other protocols"
tshark -r "$tmp/x.pcap" -Y '_ws.malformed' >"$tmp/malformed.out" 2>/dev/null
[ -s "$tmp/malformed.out" ] && fail "malformed frames: $(head -n 3 "$tmp/malformed.out")"
has_not . "$tmp/malformed.out"
"$TRIB_BUILD/tests/tools/icrc_check" "$tmp/x.pcap" >"$tmp/icrc.out" 2>&1 || fail "ICRC: $(cat "$tmp/icrc.out")"
cat "$tmp/icrc.out"
