#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
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
refuses() { # refuses TEXT ARG...: and what stands in a file stays there
    echo kept >"$tmp/y.pcap"
    trib capture "${@:2}" >"$tmp/refused.out" 2>&1 && fail "trib capture ${*:2}: exit code 0"
    has "$1" "$tmp/refused.out"
    has kept "$tmp/y.pcap"
}
refuses 'cannot capture nowhere: found nowhere, expected a link' nowhere -o "$tmp/y.pcap"
refuses "found -t 'abc'" h0-leaf0 -o "$tmp/y.pcap" -t abc
refuses 'filter: .*syntax error' h0-leaf0 -o "$tmp/y.pcap" -t 1 --filter 'udp and and'
refuses 'filter: .*syntax error' h0-leaf0 h1-leaf0 -o "$tmp/y.pcap" -t 1 --filter 'udp and and'
ln -s "$tmp/y.pcap" "$tmp/link.pcapng"
refuses 'Too many levels of symbolic links|no plain file' h0-leaf0 -o "$tmp/link.pcapng" -t 1
refuses 'found no filter' h0-leaf0 -o "$tmp/y.pcap" --filter ''
refuses 'found nowhere, expected a link' h0-leaf0 nowhere -o "$tmp/y.pcap" -t 1
refuses 'found no plain file' h0-leaf0 -o "$tmp" -t 1
trib capture nowhere -o "$tmp/z.pcap" >/dev/null 2>&1
[ -e "$tmp/z.pcap" ] && fail "a refused capture left a file"
tshark -r "$tmp/x.pcap" -T fields -e frame.protocols -e _ws.malformed >"$tmp/frames.out" 2>/dev/null || fail "tshark"
[ "$(grep -c 'udp:infiniband' "$tmp/frames.out")" -gt 50 ] || fail "too few RoCE v2 frames"
[ "$(grep -vc 'udp:infiniband\|igmp\|arp' "$tmp/frames.out")" = 0 ] || fail "frames of other protocols"
tshark -r "$tmp/x.pcap" -Y '_ws.malformed' >"$tmp/malformed.out" 2>/dev/null
[ -s "$tmp/malformed.out" ] && fail "malformed frames: $(head -n 3 "$tmp/malformed.out")"
has_not . "$tmp/malformed.out"
"$TRIB_BUILD/tests/tools/icrc_check" "$tmp/x.pcap" >"$tmp/icrc.out" 2>&1 || fail "ICRC: $(cat "$tmp/icrc.out")"
cat "$tmp/icrc.out"

# several links in one file: an interface for each, by the name of its link; in order of time; a filter keeps what it says
"$root/scripts/trib" capture leaf0-spine0 h0-leaf0 h4-leaf1 -o "$tmp/m.pcapng" --filter 'udp port 4791, or arp' >"$tmp/many.out" 2>&1 && fail "a comma is no filter"
"$root/scripts/trib" capture leaf0-spine0 h0-leaf0 h4-leaf1 -o "$tmp/m.pcapng" --filter 'udp and (host 10.0.0.1 or host 10.0.0.5 or host 10.1.0.1)' >"$tmp/many.out" 2>&1 &
many=$!
until_true 10 grep -q capturing "$tmp/many.out" || fail "several links: $(cat "$tmp/many.out")"
"$root/scripts/trib" capture h1-leaf0 h2-leaf0 -o - 2>"$tmp/live.err" | tshark -l -r - -c 40 -T fields -e frame.interface_name >"$tmp/live.out" 2>/dev/null &
live=$!
until_true 10 grep -q capturing "$tmp/live.err" || fail "-o -: $(cat "$tmp/live.err")"
perf_ok job -b 4K -e 64K -f 16 -n 2
until_true 10 eval '! kill -0 $live 2>/dev/null' || fail "tshark saw $(wc -l <"$tmp/live.out") frames while the job ran"
[ "$(sort "$tmp/live.out" | uniq -c | awk '$1 > 5' | wc -l)" = 2 ] || fail "-o -: $(sort "$tmp/live.out" | uniq -c)"
kill -TERM $many
wait $many || fail "several links: $(cat "$tmp/many.out")"
tshark -r "$tmp/m.pcapng" -T fields -e frame.interface_name -e frame.time_epoch -e ip.addr >"$tmp/many.tsv" 2>/dev/null || fail "tshark of several links"
has "^$(wc -l <"$tmp/many.tsv") frames in" "$tmp/many.out"
[ "$(cut -f 1 "$tmp/many.tsv" | sort -u | paste -sd' ')" = 'h0:0-leaf0:0 h4:0-leaf1:0 leaf0:4-spine0:0' ] || fail "interfaces: $(cut -f 1 "$tmp/many.tsv" | sort | uniq -c)"
[ "$(cut -f 3 "$tmp/many.tsv" | grep -vcE '10\.(0\.0\.[15]|1\.0\.1)\b')" = 0 ] && [ "$(wc -l <"$tmp/many.tsv")" -gt 50 ] || fail "the filter: $(cut -f 3 "$tmp/many.tsv" | sort | uniq -c)"
sort -c -s -n -k 2,2 "$tmp/many.tsv" || fail "frames out of order"
tshark -r "$tmp/m.pcapng" -Y '_ws.malformed' >"$tmp/malformed.out" 2>/dev/null
has_not . "$tmp/malformed.out"
compgen -G '/tmp/trib-capture.*' >/dev/null && fail "parts are left in /tmp"

# several at a time, each with the frames of its own link, and none in the way of the next one however it ended
begin() { # begin NAME LINK FILE
    "$root/scripts/trib" capture "$2" -o "$3" >"$tmp/$1.out" 2>&1 &
    until_true 10 grep -q capturing "$tmp/$1.out" || fail "capture of $2: $(cat "$tmp/$1.out")"
}
begin a h0-leaf0 "$tmp/a.pcap"
a=$!
begin b h4-leaf1 "$tmp/b b,.pcap"
b=$!
begin gone h0-leaf0 "$tmp/c.pcap"
disown $!
kill -9 $!
begin c h1-leaf0 "$tmp/c.pcap"
c=$!
begin full h2-leaf0 /dev/full
full=$!
trib capture h3-leaf0 -o "$tmp/a.pcap" -t 1 >"$tmp/refused.out" 2>&1 && fail "two captures into one file"
has 'another capture writes into that file' "$tmp/refused.out"
perf_ok more -b 4K -e 4K -n 2
kill -TERM $a $b $full
wait $a && wait $b || fail "captures side by side"
wait $full && fail "a full disk: exit code 0"
has 'cannot write all frames into /dev/full: No space' "$tmp/full.out"
for f in "a.pcap 10.0.0.1" "b b,.pcap 10.0.0.5"; do
    addr=${f##* }
    tshark -r "$tmp/${f% *}" -T fields -e ip.addr 2>/dev/null >"$tmp/addr.out"
    [ "$(grep -c . "$tmp/addr.out")" -gt 20 ] || fail "${f% *}: $(cat "$tmp/a.out" "$tmp/b.out")"
    grep . "$tmp/addr.out" | grep -Fv "$addr" | grep -v '224\.' | head -n 3 >"$tmp/others.out"
    [ -s "$tmp/others.out" ] && fail "frames of others in ${f% *}: $(cat "$tmp/others.out")"
done
trib down >/dev/null || fail "down"
wait $c && fail "the fabric of a capture went down: exit code 0"
has 'leaf-spine-8 is down; .* has the frames until then' "$tmp/c.out"
tshark -r "$tmp/c.pcap" 2>&1 | grep -q RRoCE || fail "what was captured is lost"
