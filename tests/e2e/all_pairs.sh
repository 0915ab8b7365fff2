#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# All ranks connect to all others without a frame for each pair on its way; an operation between all of them at once has a frame and
# its ACK for each, and the pool has both.
. "$(dirname "$0")/lib.sh"

echo 'ecmp = "balanced"; leaf_spine = { leaves = 8; spines = 16; hosts_per_leaf = 16; host_link = { rate = "400Gb/s"; latency = "300ns"; };
    spine_link = { rate = "400Gb/s"; latency = "300ns"; }; };' >"$tmp/128.conf"

# used ALGO ITERATIONS: "peak pool"
used() {
    trib sim "$tmp/128.conf" alltoall --algo "$1" --payload none -b 4K -e 4K -n "$2" -w 0 >"$tmp/sim.out" 2>&1 || fail "$1: $(cat "$tmp/sim.out")"
    sed -n 's/.* \([0-9]*\) of \([0-9]*\) frame buffers.*/\1 \2/p' "$tmp/sim.out"
}
read -r peak pool <<<"$(used pairwise 1)"
[ "$peak" -le 8192 ] || fail "128 ranks connect with $peak frames on their way"
[ "$pool" = 65536 ] || fail "a pool of $pool frames for one peer after the other"
read -r peak pool <<<"$(used direct 10)"
((peak > 128 * 128 && peak <= 2 * 128 * 128)) || fail "$peak frames of 128 x 128 messages"
((pool >= 2 * 128 * 128 + 65536)) || fail "a pool of $pool frames for $peak"

# in two hops over rails
echo 'mtu = 4096; ecmp = "balanced"; gpu_nodes = { nodes = 16; gpus = 8; planes = ( 5, 4, 4, 5 ); nvlink = { rate = "25GB/s"; latency = "300ns"; };
    nic = { rate = "400Gb/s"; latency = "300ns"; }; };
rails = { leaves = 8; spines = 1; spine_link = { rate = "400Gb/s"; latency = "300ns"; }; };' >"$tmp/rails.conf"
trib sim "$tmp/rails.conf" alltoall --algo pxn --payload none -b 64K -e 64K -n 1 -w 0 --place out >"$tmp/sim.out" 2>&1 || fail "pxn: $(cat "$tmp/sim.out")"
