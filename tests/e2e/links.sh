#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib perf measures what links carry: the bytes of a row are those of the frames that were captured on its busiest link, to the byte,
# and more of them where frames are lost. Where a process does not say what its links carry, a row has no such figure, and says why.
. "$(dirname "$0")/lib.sh"
command -v tshark >/dev/null || skip "no tshark"
command -v jq >/dev/null || skip "no jq"

# port COUNTER: of h0's link, in the direction to the switch
port() { trib telemetry /trib/ports,h0:0 | jq "[.. | objects | select(has(\"$1\")) | .$1] | add"; }
# sent FILTER: bytes of captured frames from h0 with those of the link around them
sent() {
    tshark -r "$tmp/x.pcap" -o infiniband.identify_payload:FALSE -Y "eth.src == $mac && ($1)" -T fields -e frame.len 2>/dev/null |
        awk '{ n += ($1 < 60 ? 60 : $1) + 24 } END { print n + 0 }'
}
# Nothing has been sent for a moment: a NIC repeats what it says about a process that has ended.
rests() {
    local n
    n=$(port egress_link_bytes)
    sleep 0.7
    [ "$n" = "$(port egress_link_bytes)" ]
}
# measure NAME: one broadcast from h0 in each place, beside a capture; sets before, after, lost, row, ops. Nothing is checked: in place
# that is one more operation.
measure() {
    local cap frames
    before=$(port egress_link_bytes) lost=$(port egress_lost_bytes) frames=$(port egress_lost)
    "$root/scripts/trib" capture h0-switch0 -o "$tmp/x.pcap" >"$tmp/capture.out" 2>&1 &
    cap=$!
    until_true 10 grep -q capturing "$tmp/capture.out" || fail "capture did not start: $(cat "$tmp/capture.out")"
    trib perf two-hosts.conf broadcast --algo ring -b 4M -e 4M -n 1 -w 0 -c 0 --wide -J "$tmp/$1.json" >"$tmp/$1.out" 2>&1 ||
        fail "trib perf ended with $?"
    until_true 20 rests || fail "h0 never stops sending"
    kill -TERM $cap
    wait $cap || fail "capture ended with $?"
    after=$(port egress_link_bytes)
    lost=$(($(port egress_lost_bytes) - lost + 24 * ($(port egress_lost) - frames)))
    row=$(jq '[.results[].link_bytes] | add' "$tmp/$1.json")
    ops=$(jq '.results | length' "$tmp/$1.json")
}

trib up "$conf/two-hosts.conf" --dilation 1 >/dev/null || fail "no fabric"
mac=$(trib plan "$conf/two-hosts.conf" | awk '$1 == "h0" && $2 == "host" { print $7 }')
measure clean
[ "$ops" = 2 ] || fail "found $ops rows, expected one in each place"
[ "$(sent frame)" = $((after - before)) ] || fail "captured $(sent frame) bytes, counted $((after - before))"
[ "$(sent 'infiniband.bth.opcode < 32')" = "$row" ] || fail "captured $(sent 'infiniband.bth.opcode < 32') bytes, the rows have $row"
[ "$row" -gt $((2 * 4194304)) ] || fail "the rows have only $row bytes"
[ "$(jq '[.results[] | .link_bytes / .model_link_bytes | . >= 1 and . < 1.01] | all' "$tmp/clean.json")" = true ] ||
    fail "far from the model: $(jq -c '.results[] | [.link_bytes, .model_link_bytes]' "$tmp/clean.json")"
has ' 1\.00[0-9] +1  (ok|lag)' "$tmp/clean.out"

# Frames that are lost on the link have used it, those of connecting too.
trib link h0-switch0 loss=2% >/dev/null || fail "no loss"
measure lossy
[ "$lost" -gt 80000 ] || fail "only $lost bytes were lost"
[ "$(sent frame)" = $((after - before - lost)) ] || fail "captured $(sent frame) bytes, counted $((after - before)) of which $lost were lost"
reliable=$(sent 'infiniband.bth.opcode < 32')
if [ "$row" -lt $((reliable + lost * 9 / 10)) ] || [ "$row" -gt $((reliable + lost)) ]; then
    fail "the rows have $row bytes, $reliable were captured and $lost lost"
fi
trib down >/dev/null

# 280 directions: more than one answer of a process has.
sed 's/^name *=.*/name = "wide";/; s/hosts = 2;/hosts = 140;/' "$conf/two-hosts.conf" >"$tmp/wide.conf"
trib up "$tmp/wide.conf" --dilation 100 >/dev/null || fail "no wide fabric"
perf_ok wide "$tmp/wide.conf" broadcast -g 2 --algo ring -b 64K -e 64K -n 1 -w 0
[ "$(jq '[.results[].link_bytes > 65536] | all' "$tmp/wide.json")" = true ] || fail "$(jq -c '.results[]' "$tmp/wide.json")"
trib down >/dev/null

# A process that does not answer: the row is measured without its links. The sockets of telemetry are files of the run directory.
trib up "$conf/two-hosts.conf" --dilation 1 >/dev/null || fail "no fabric"
rm "$run"/two-hosts/dpdk/*/dpdk_telemetry.v2* || fail "no sockets of telemetry"
perf_ok silent two-hosts.conf broadcast --algo ring -b 64K -e 64K -n 1 -w 0
has '^# Links not measured   : fabric does not say what its links carry: No such file' "$tmp/silent.out"
has ' - +- +[0-9.]+ +[0-9.]+ +- +1  (ok|lag)' "$tmp/silent.out"
[ "$(jq '[.results[] | .link_bytes == null and .link_utilisation == null and .model_link_bytes > 65536 and
    (.link_not_measured | startswith("fabric does not say"))] | all' "$tmp/silent.json")" = true ] || fail "$(jq -c '.results[]' "$tmp/silent.json")"
