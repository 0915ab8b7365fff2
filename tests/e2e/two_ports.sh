#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A host with two ports has two devices, trib0 and trib1, each with an address and a way of its own; programs use either.
. "$(dirname "$0")/lib.sh"
command -v ibv_rc_pingpong >/dev/null || skip "no ibv_rc_pingpong"

trib up "$root/tests/e2e/confs/two-rails.conf" >/dev/null || fail "no fabric"
trib exec a -- ibv_devices >"$tmp/devices.out" || fail "ibv_devices"
has 'trib0[[:space:]]+00540afffe000001' "$tmp/devices.out"
has 'trib1[[:space:]]+00540afffe020001' "$tmp/devices.out"
[ "$(trib exec a -- sh -c 'cd /sys/class/infiniband && cat trib?/ports/1/gids/0 && ls /dev/infiniband' | tr '\n' ' ')" = \
    "0000:0000:0000:0000:0000:ffff:0a00:0001 0000:0000:0000:0000:0000:ffff:0a02:0001 trib0 trib1 " ] || fail "sysfs of both"

frames() { # frames NODE:PORT: what the switch has received there
    "$TRIB_BUILD/trib-telemetry" "$run/two-rails" "/trib/ports,$1" | awk -F'[:,]' '/"rx_frames"/ { n += $2 } END { print n + 0 }'
}
for dev in 0 1; do
    used=$(frames rail$dev:0) other=$(frames rail$((1 - dev)):0)
    next_port
    timeout 60 "$root/scripts/trib" exec a -- ibv_rc_pingpong -d trib$dev -g 0 -n 300 -c -p $port >"$tmp/server.out" 2>&1 &
    until_true 10 listens || fail "does not listen"
    timeout 60 "$root/scripts/trib" exec b -- ibv_rc_pingpong -d trib$dev -g 0 -n 300 -c -p $port 127.0.0.1 >"$tmp/client.out" 2>&1 ||
        fail "client on trib$dev"
    wait $! || fail "server on trib$dev"
    [ $(($(frames rail$dev:0) - used)) -ge 300 ] || fail "trib$dev did not use rail$dev"
    [ "$(frames rail$((1 - dev)):0)" = "$other" ] || fail "trib$dev used the other rail"
done
