#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Unmodified verbs programs run to completion at dilation 1 over one and over three switches: rdma-core's examples (which check
# their data with -c) and perftest. docs/verbs.md lists them.
# load: any
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
for client in h1 h4; do # the same leaf; leaf, spine, leaf
    for kind in rc uc ud srq; do
        pair h0 $client ibv_${kind}_pingpong -g 0 -n 300 -c
        pair h0 $client ibv_${kind}_pingpong -g 0 -n 300 -e
    done
    for mtu in 256 512 1024 2048 4096; do
        pair h0 $client ibv_rc_pingpong -g 0 -n 100 -m $mtu -c
    done
    for test in send write read atomic; do
        pair h0 $client ib_${test}_bw -x 0 -F -n 300
        pair h0 $client ib_${test}_lat -x 0 -F -n 300
    done
    if [ $client = h4 ]; then # all sizes, up to 8 MiB: 13 s
        pair h0 $client ib_send_bw -x 0 -F -n 100 -a
        pair h0 $client ib_write_bw -x 0 -F -n 100 -a -b
    fi
    pair h0 $client ib_read_bw -x 0 -F -n 100 -q 8
    pair h0 $client ib_send_bw -x 0 -F -n 300 -e
    for kind in UC UD; do
        pair h0 $client ib_send_bw -x 0 -F -n 300 -c $kind
        pair h0 $client ib_send_lat -x 0 -F -n 300 -c $kind
    done
    pair h0 $client ib_write_bw -x 0 -F -n 300 -c UC
done
pair h0 h0 ibv_rc_pingpong -g 0 -n 300 -c # a program that talks to its own host
trib exec h0 -- ibv_devinfo -v >"$tmp/devinfo.out" 2>&1 || fail "ibv_devinfo"
has 'PORT_ACTIVE' "$tmp/devinfo.out"
trib exec h0 -- ibv_devices >"$tmp/devices.out" 2>&1 || fail "ibv_devices"
has trib0 "$tmp/devices.out"
echo 'echo I am $TRIB_HOST; ibv_devices; exit 3' | SHELL=/bin/sh trib shell h2 >"$tmp/shell.out" 2>&1
[ $? = 3 ] || fail "a shell's exit code is passed through: $(cat "$tmp/shell.out")"
has 'I am h2' "$tmp/shell.out"
has trib0 "$tmp/shell.out"
