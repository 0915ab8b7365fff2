#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Both GIDs of a port, IPv4-mapped and link-local, in its table and in sysfs; programs run by either, over one and over three
# switches, and frames between link-local addresses are RoCE v2 in IPv6 to Wireshark, with right ICRCs by zlib's CRC.
# load: any
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
trib exec h4 -- ibv_devinfo -v >"$tmp/devinfo.out" 2>&1 || fail "ibv_devinfo"
has 'GID\[ *0\]:.*::ffff:10\.0\.0\.5, RoCE v2' "$tmp/devinfo.out"
has 'GID\[ *1\]:.*fe80::54:aff:fe00:5, RoCE v2' "$tmp/devinfo.out"
trib exec h4 -- sh -c 'cd /sys/class/infiniband/trib0/ports/1 && cat gids/* gid_attrs/types/*' >"$tmp/sysfs.out" 2>&1
if ! grep -q 'no private /sys' "$tmp/sysfs.out"; then
    printf '%s\n' 0000:0000:0000:0000:0000:ffff:0a00:0005 fe80:0000:0000:0000:0054:0aff:fe00:0005 'RoCE v2' 'RoCE v2' |
        cmp -s - "$tmp/sysfs.out" || fail "sysfs: $(cat "$tmp/sysfs.out")"
fi

if command -v tshark >/dev/null; then
    "$root/scripts/trib" capture h0-leaf0 -o "$tmp/x.pcap" -t 60 >"$tmp/capture.out" 2>&1 &
    cap=$!
    until_true 10 grep -q capturing "$tmp/capture.out" || fail "capture did not start: $(cat "$tmp/capture.out")"
fi
for client in h1 h4; do # the same leaf; leaf, spine, leaf
    for kind in rc uc ud srq; do
        pair h0 $client ibv_${kind}_pingpong -g 1 -n 100 -c
    done
    pair h0 $client ibv_rc_pingpong -g 1 -n 100 -m 4096 -s 100000 -c
    for test in send write read atomic; do
        pair h0 $client ib_${test}_bw -x 1 -F -n 50
    done
    pair h0 $client ib_send_bw -x 1 -F -n 50 -c UD
done
pair h0 h0 ibv_rc_pingpong -g 1 -n 100 -c
if command -v tshark >/dev/null; then
    kill -TERM $cap 2>/dev/null
    wait $cap || fail "capture ended with $?"
    tshark -r "$tmp/x.pcap" -Y 'ipv6 && infiniband' -T fields -e ipv6.src -e ipv6.dst 2>/dev/null | sort -u >"$tmp/addr.out"
    [ "$(grep -c '^fe80::54:.*fe80::54:' "$tmp/addr.out")" = 4 ] || fail "expected two pairs of link-local addresses: $(cat "$tmp/addr.out")"
    tshark -r "$tmp/x.pcap" -Y '_ws.malformed' >"$tmp/malformed.out" 2>/dev/null
    [ -s "$tmp/malformed.out" ] && fail "malformed frames: $(head -n 3 "$tmp/malformed.out")"
    "$TRIB_BUILD/tests/tools/icrc_check" "$tmp/x.pcap" >"$tmp/icrc.out" 2>&1 || fail "ICRC: $(cat "$tmp/icrc.out")"
    has '^[0-9]{3,} right, 0 wrong' "$tmp/icrc.out"
fi
if command -v ucx_perftest >/dev/null; then
    for tls in rc_verbs ud_verbs; do
        next_port
        UCX_IB_GID_INDEX=1 timeout 60 "$root/scripts/trib" exec h0 -- ucx_perftest $(ucx_perftest_alone) -p $port -t am_lat -x $tls -d trib0:1 -n 100 \
            >"$tmp/server.out" 2>&1 &
        pid=$!
        until_true 20 listens || fail "ucx_perftest does not listen"
        UCX_IB_GID_INDEX=1 timeout 60 "$root/scripts/trib" exec h4 -- ucx_perftest $(ucx_perftest_alone) -p $port 127.0.0.1 -t am_lat -x $tls -d trib0:1 \
            -n 100 >"$tmp/client.out" 2>&1 || fail "ucx_perftest -x $tls by the link-local GID"
        wait $pid || fail "ucx_perftest -x $tls by the link-local GID, server"
        has_not 'WARN|ERROR' "$tmp/client.out"
    done
fi
trib status >"$tmp/status.out"
has_not 'drop_' "$tmp/status.out"
