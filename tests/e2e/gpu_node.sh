#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A GPU of a node with four NVSwitch planes and a NIC has five devices. Programs use any of them, several at once, and what one
# sends goes by its own plane and no other.
. "$(dirname "$0")/lib.sh"
command -v ibv_rc_pingpong >/dev/null || skip "no ibv_rc_pingpong"

trib up "$conf/h100-node.conf" >/dev/null || fail "no fabric"
trib exec n0g0 -- ibv_devices >"$tmp/devices.out" || fail "ibv_devices"
[ "$(grep -c '^ *trib[0-4] ' "$tmp/devices.out")" = 5 ] || fail "found other than 5 devices"
# all five are open at once: their loops sleep on bells of their own
trib exec n0g7 -- sh -c 'for d in 0 1 2 3 4; do ibv_devinfo -d trib$d & done; wait' >"$tmp/info.out" 2>&1 || fail "ibv_devinfo"
[ "$(grep -c 'PORT_ACTIVE' "$tmp/info.out")" = 5 ] || fail "found other than 5 active ports"

port=$((20000 + RANDOM % 20000))
frames() { # frames NODE:PORT: what the switch has received there
    "$TRIB_BUILD/trib-telemetry" "$run/h100-node" "/trib/ports,$1" | awk -F'[:,]' '/"rx_frames"/ { n += $2 } END { print n + 0 }'
}
listens() { grep -qi ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; }
pair() { # pair DEVICE PORT: n0g1 and n0g5 talk on it
    timeout 60 "$root/scripts/trib" exec n0g1 -- ibv_rc_pingpong -d "trib$1" -g 0 -n 200 -c -p "$2" >"$tmp/server$1.out" 2>&1 &
    local server=$!
    until_true 10 listens "$2" || return 1
    timeout 60 "$root/scripts/trib" exec n0g5 -- ibv_rc_pingpong -d "trib$1" -g 0 -n 200 -c -p "$2" 127.0.0.1 >"$tmp/client$1.out" 2>&1 &&
        wait $server
}

pair 2 $port || fail "trib2"
[ "$(frames n0s2:5)" -ge 200 ] || fail "trib2 did not use plane 2"
for other in n0s0:5 n0s1:5 n0s3:5 leaf0:5; do
    [ "$(frames $other)" = 0 ] || fail "trib2 used $other"
done
# a plane and the NIC at the same time
pair 3 $((port + 1)) &
plane=$!
pair 4 $((port + 2)) || fail "trib4"
wait $plane || fail "trib3"
[ "$(frames n0s3:5)" -ge 200 ] || fail "trib3 did not use plane 3"
[ "$(frames leaf0:5)" -ge 200 ] || fail "trib4 did not use the leaf"
