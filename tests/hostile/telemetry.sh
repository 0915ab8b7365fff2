#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Telemetry connections that are held, that ask and do not read, that send too much, or that come and go do not keep anybody else from
# `trib status`.
. "$(dirname "$0")/../e2e/lib.sh"

name=leaf-spine-8
trib up $name --dilation 4000 >/dev/null || fail "no fabric"
pid=$(head -n 1 "$run/$name/proc/fabric.pid")
sock=$run/$name/dpdk/fabric/dpdk_telemetry.v2
for how in "idle 12" "idle 200" "slow 40" "huge 40" "hasty 40"; do
    "$TRIB_BUILD/tests/hostile/telemetry" "$sock" $how 20 &
    attack=$!
    sleep 0.5
    t0=$(date +%s%N)
    for i in 1 2; do
        timeout 10 "$root/scripts/trib" status >"$tmp/status.out" 2>&1 || fail "$how: trib status ended with $?"
        grep -q 'rx_frames\|dilation 4000$' "$tmp/status.out" && ! grep -q 'does not answer' "$tmp/status.out" ||
            fail "$how: trib status got no answer: $(cat "$tmp/status.out")"
    done
    ms=$((($(date +%s%N) - t0) / 2000000))
    kill $attack
    wait $attack 2>/dev/null
    [ $ms -lt 2000 ] || fail "$how: trib status took $ms ms"
    kill -0 "$pid" || fail "$how: the switch process has ended"
done
# one by one the commands still do what they say
trib telemetry /trib/nodes >"$tmp/nodes.out" || fail "no nodes"
has '"spine1"' "$tmp/nodes.out"
trib telemetry /eal/params >"$tmp/eal.out" || fail "DPDK's own commands"
has trib-switch "$tmp/eal.out"
trib down >/dev/null || fail "down"
