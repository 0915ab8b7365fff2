#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Frames per second through one trib-switch lcore, beside dpdk-testpmd (macswap), Open vSwitch with DPDK (one PMD thread), the switch
# without shaping and that without anything of a queue (bench_plain), on the same memif ports with the same generator. The forwarder has core 0, the generator core 1;
# rounds alternate between forwarders, and medians are taken.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
. tests/bench/forwarders.sh
build=$(cd "${BUILD:-build}" && pwd)
dir=$(mktemp -d)
trap 'forwarders_stop; rm -rf "$dir"' EXIT

[ "$(nproc)" -ge 2 ] || { skipped forward "needs two cores, found $(nproc)"; exit 0; }
command -v dpdk-testpmd >/dev/null || { skipped forward "dpdk-testpmd is not installed (scripts/setup.sh bench)"; exit 0; }
ovs=ovs
[ -x /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk ] || { ovs=; skipped "forward against Open vSwitch" "not installed (scripts/setup.sh bench)"; }

# net_memif in Open vSwitch takes frames of 1,518 bytes at most ("does not support MTU configuration").
ports="2 8" sizes="64 4096" flows="1 10000" rounds=5 seconds=0.3
declare -A rate
[ -z "${BENCH_QUICK:-}" ] || ports=2 sizes=64 flows=10000 rounds=2
for n in $ports; do
    for f in switch testpmd unshaped plain $ovs; do forwarder_start $f "$n" || exit 1; done
    for size in $sizes; do
        for flow in $flows; do
            who="switch testpmd unshaped plain $ovs" target=0.80
            [ "$size" = 4096 ] && who="switch testpmd unshaped plain" target=0.95
            for f in $who; do : >"$dir/$f.rates"; done
            for _ in $(seq $rounds); do
                for f in $who; do forwarder_measure $f "$size" "$flow" $seconds >>"$dir/$f.rates" || exit 1; done
            done
            for f in $who; do rate[$f]=$(median <"$dir/$f.rates"); done
            what="$size B, $n ports, $flow flow(s)"
            row "forward $what" ${rate[switch]} frames/s "dpdk-testpmd macswap" ${rate[testpmd]} $target
            case "$who" in *ovs) row "forward $what" ${rate[switch]} frames/s "Open vSwitch with DPDK" ${rate[ovs]} 1.5 ;; esac
            row "shaping $what" ${rate[switch]} frames/s "the same switch without shaping" ${rate[unshaped]} 0.90
            row "queues $what" ${rate[switch]} frames/s "the switch without queues" ${rate[plain]} null
        done
    done
    forwarders_stop
done
