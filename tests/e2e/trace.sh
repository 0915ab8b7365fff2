#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib sim --trace: frames of the links that were chosen, as pcapng that Wireshark reads, at the times of the fabric; the same to the
# byte each time; with --payload none the same frames at the same times, cut to their headers.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v tshark >/dev/null || skip "no tshark"

sim() { trib sim "$@" 2>"$tmp/sim.err" >"$tmp/sim.out" || fail "trib sim $*: $(cat "$tmp/sim.err")"; }
# Wireshark guesses at payloads unless told that these are data: a few look like headers of something else.
shark() { tshark -o infiniband.identify_payload:FALSE "$@" 2>/dev/null || fail "tshark $*"; }

sim leaf-spine-8.conf --algo ring,sharp -b 1M -e 1M --trace "$tmp/a.pcapng" --links h0-leaf0,spine0
has '^trib-sim: [0-9]+ frames in .*a.pcapng' "$tmp/sim.err"
shark -r "$tmp/a.pcapng" -T fields -e frame.time_epoch -e frame.interface_name -e frame.packet_flags_direction -e frame.len \
    -e frame.cap_len -e frame.protocols >"$tmp/frames"
shark -r "$tmp/a.pcapng" -Y '_ws.malformed || _ws.short' >"$tmp/bad.out"
has_not . "$tmp/bad.out"
has_not 'eth:ethertype:ip:udp:(data|$)' "$tmp/frames"
"$TRIB_BUILD/tests/tools/icrc_check" "$tmp/a.pcapng" >"$tmp/icrc.out" || fail "ICRC: $(cat "$tmp/icrc.out")"
has ' 0 wrong, 0 other' "$tmp/icrc.out"
[ "$(grep -c . "$tmp/frames")" = "$(sed -n 's/^trib-sim: \([0-9]*\) frames in .*/\1/p' "$tmp/sim.err")" ] || fail "frames are missing"
[ "$(cut -f 2 "$tmp/frames" | sort -u | tr '\n' ' ')" = "h0:0-leaf0:0 leaf0:4-spine0:0 leaf1:4-spine0:1 " ] ||
    fail "links: $(cut -f 2 "$tmp/frames" | sort | uniq -c)"
capinfos "$tmp/a.pcapng" >"$tmp/capinfos.out" || fail "capinfos"
has 'Speed = 400000000000' "$tmp/capinfos.out"
has 'Description = outbound: h0:0 to leaf0:0' "$tmp/capinfos.out"
has 'Strict time order: *True' "$tmp/capinfos.out"

# A frame takes (bytes + 24) / rate, 83.56 ns for 4 KiB and the headers of a WRITE (4,154 bytes) at 400 Gb/s: none comes sooner
# behind another, and in a train of them that is what they take to the nanosecond that the file tells, however long it is.
awk -F '\t' '$2 == "h0:0-leaf0:0" {
        t = substr($1, index($1, ".") + 1) + 0; d = $3; takes = ($4 + 24) / 50
        if (d in last && t - last[d] <= takes - 1) { print "too soon: " $0; bad = 1 }
        if (d in last && t - last[d] < takes + 1) { n[d]++; sum[d] += takes; big[d] += $4 == 4154 }
        else { n[d] = sum[d] = big[d] = 0; first[d] = t }
        if (n[d] && (t - first[d] <= sum[d] - 1 || t - first[d] >= sum[d] + 1)) { n[d] = sum[d] = big[d] = 0; first[d] = t }
        if (big[d] > most) { most = big[d]; says = sprintf("%d frames in %d ns, %.2f expected", n[d], t - first[d], sum[d]) }
        last[d] = t
    }
    END { print says; exit bad || most < 100 }' "$tmp/frames" >"$tmp/steps.out" ||
    fail "expected trains of 100 frames of 4 KiB that take what the link takes: $(cat "$tmp/steps.out")"
cat "$tmp/steps.out"

# again, and without data
few=(leaf-spine-8.conf --algo ring,sharp -b 64K -e 64K -c 0)
sim "${few[@]}" --trace "$tmp/1.pcapng"
sim "${few[@]}" --trace "$tmp/2.pcapng"
cmp "$tmp/1.pcapng" "$tmp/2.pcapng" || fail "two runs, two traces"
sim "${few[@]}" --trace "$tmp/n.pcapng" --payload none
for t in 1 n; do
    shark -r "$tmp/$t.pcapng" -T fields -e frame.time_epoch -e frame.interface_name -e frame.packet_flags_direction -e frame.len \
        -e infiniband.bth.opcode -e infiniband.bth.psn >"$tmp/$t.frames"
done
cmp "$tmp/1.frames" "$tmp/n.frames" || fail "other frames without data"
[ "$(cut -f 2 "$tmp/n.frames" | sort -u | grep -c .)" -gt 8 ] || fail "not all links"
shark -r "$tmp/n.pcapng" -T fields -e frame.cap_len -e frame.len | awk '$2 > 4096 { n++; if ($1 > 128) bad++ } END { exit !(n > 100 && !bad) }' ||
    fail "payload none carries payloads"
shark -r "$tmp/n.pcapng" -Y _ws.malformed >"$tmp/bad.out"
has_not . "$tmp/bad.out"

refuses() { # refuses CODE TEXT ARG...
    local code=$1 text=$2
    shift 2
    trib sim "$@" >"$tmp/refuse.out" 2>&1
    local rc=$?
    [ $rc = "$code" ] || fail "trib sim $*: exit code $rc, expected $code"
    has "$text" "$tmp/refuse.out"
}
refuses 2 '--links: found neither --trace nor' two-hosts.conf --links h0-leaf0
refuses 2 '--trace: found nothing, expected FILE' two-hosts.conf --trace=
refuses 2 '--links: found "h0-spine0", expected a link or a node' leaf-spine-8.conf --trace "$tmp/x.pcapng" --links h0-spine0
refuses 2 '--links: found "leaf0-leaf0"' leaf-spine-8.conf --trace "$tmp/x.pcapng" --links h0-leaf0,leaf0-leaf0
refuses 2 '--trace: cannot write .*: No such file' two-hosts.conf --trace "$tmp/none/x.pcapng"
[ ! -e "$tmp/x.pcapng" ] || fail "a trace of nothing"
refuses 1 'cannot write /dev/full: No space left' two-hosts.conf --algo ring -b 64K -e 64K --trace /dev/full
