#!/usr/bin/env bash
# Unmodified verbs programs run to completion at dilation 1 over one and over three switches: rdma-core's examples (which check
# their data with -c) and perftest. The README's table lists them.
. "$(dirname "$0")/lib.sh"
command -v ibv_rc_pingpong >/dev/null || skip "no ibv_rc_pingpong"
command -v ib_send_bw >/dev/null || skip "no perftest"

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
port=$((20000 + RANDOM % 20000))
listens() { grep -qi ":$(printf %04X $port) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; }

pair() { # pair SERVER_HOST CLIENT_HOST PROGRAM ARG...
    local server=$1 client=$2 pid
    shift 2
    port=$((port + 1))
    timeout 60 "$root/scripts/trib" exec "$server" -- "$@" -p $port >"$tmp/server.out" 2>&1 &
    pid=$!
    until_true 10 listens || fail "$* does not listen"
    timeout 60 "$root/scripts/trib" exec "$client" -- "$@" -p $port 127.0.0.1 >"$tmp/client.out" 2>&1 || fail "$client to $server: $*"
    wait $pid || fail "server $server: $*"
}

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
    pair h0 $client ib_send_bw -x 0 -F -n 100 -a
    pair h0 $client ib_write_bw -x 0 -F -n 100 -a -b
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
