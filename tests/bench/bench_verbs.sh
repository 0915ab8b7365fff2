#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# perftest from host to host over one switch at dilation 1, beside TCP (iperf3) and UDP (bench_udp) between two network namespaces on a
# Linux bridge with default offloads; rounds alternate, the medians count. And what a verbs program's process takes. Root only.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
build=$(cd "${BUILD:-build}" && pwd)
for tool in iperf3 ib_write_bw ib_send_lat ip; do
    command -v $tool >/dev/null || { skipped verbs "no $tool (scripts/setup.sh bench installs it)"; exit 0; }
done
[ "$(id -u)" = 0 ] || { skipped verbs "network namespaces on a bridge need root"; exit 0; }

dir=$(mktemp -d)
export TRIB_BUILD=$build XDG_RUNTIME_DIR=$dir
unset TRIB_RUN TRIB_HOST TRIB_LIB
ns=tb$$ pids=()
cleanup() {
    for p in ${pids[@]+"${pids[@]}"}; do kill "$p" 2>/dev/null; done
    wait 2>/dev/null
    scripts/trib down tests/bench/verbs.conf >/dev/null 2>&1
    ip netns del ${ns}a 2>/dev/null
    ip netns del ${ns}b 2>/dev/null
    ip link del $ns 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# ---- two namespaces on a bridge ----
bridge() {
    ip link add $ns type bridge && ip link set $ns up || return
    for side in a b; do
        ip netns add $ns$side && ip link add $ns$side type veth peer name eth0 netns $ns$side &&
            ip link set $ns$side master $ns up && ip -n $ns$side link set eth0 up && ip -n $ns$side link set lo up || return
    done
    ip -n ${ns}a addr add 10.111.0.1/24 dev eth0 && ip -n ${ns}b addr add 10.111.0.2/24 dev eth0
}
bridge 2>"$dir/bridge.err" || { skipped verbs "no network namespaces on a bridge here: $(head -n 1 "$dir/bridge.err")"; exit 0; }
ip netns exec ${ns}a iperf3 -s >/dev/null 2>&1 &
pids+=($!)
ip netns exec ${ns}a "$build/tests/bench/bench_udp" server 9000 2>/dev/null &
pids+=($!)

# ---- two hosts on a switch ----
scripts/trib up tests/bench/verbs.conf --dilation 1 >/dev/null || exit 1

port=$((20000 + RANDOM % 12000))
listens() { grep -qi ":$(printf %04X $port) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; }
perftest() { # perftest PROGRAM ARG...: the client's table is in $dir/client.out
    local server i
    port=$((port + 1))
    while listens; do port=$((port + 1)); done
    timeout 60 scripts/trib exec h0 -- "$@" -x 0 -F -p $port >"$dir/server.out" 2>&1 &
    server=$!
    for i in $(seq 200); do
        listens && break
        sleep 0.05
    done
    timeout 60 scripts/trib exec h1 -- /usr/bin/time -f %M -o "$dir/kib" "$@" -x 0 -F -p $port 127.0.0.1 >"$dir/client.out" 2>&1 && wait $server ||
        { tail -n 5 "$dir/client.out" "$dir/server.out" >&2; return 1; }
}
last() { awk -v c="$1" '/^ *[0-9]+ +[0-9]+ / { v = $c } END { print v }' "$dir/client.out"; }

seconds=2 rounds="1 2 3 4 5" messages=20000 pings=10000
[ -z "${BENCH_QUICK:-}" ] || { seconds=1 rounds=1 messages=5000 pings=5000; }
# Gb/s, microseconds
tcp() { ip netns exec ${ns}b iperf3 -c 10.111.0.1 -t $seconds -J | jq .end.sum_received.bits_per_second/1e9; }
udp() { ip netns exec ${ns}b "$build/tests/bench/bench_udp" 10.111.0.1 9000 8 $pings; }
write_bw() { perftest ib_write_bw --report_gbits -s "$1" -n "$2" && last 4; }
send_lat() { perftest ib_send_lat -s 8 -n $pings && last 6; }

for _ in $rounds; do
    tcp >>"$dir/tcp" && udp >>"$dir/udp" && send_lat >>"$dir/send" && write_bw 65536 $messages >>"$dir/write64k" && write_bw 1048576 $((messages / 10)) >>"$dir/write1m" || exit 1
done
mib() { awk '{ printf "%.1f", $1 / 1024 }' "$dir/kib"; }
program=$(mib) # its last buffers were of 1 MiB
TRIB_RUN=$(dirname "$(dirname "$(find "$dir" -name '*.ready')")") /usr/bin/time -f %M -o "$dir/kib" \
    scripts/trib perf tests/bench/verbs.conf -g 2 -b 1M -e 1M -n 2 --algo ring >"$dir/perf.out" 2>&1 || { tail -n 5 "$dir/perf.out" >&2; exit 1; }
rank=$(mib)
row "ib_write_bw 64 KiB, one QP" "$(median <"$dir/write64k")" Gb/s "iperf3 TCP over a Linux bridge" "$(median <"$dir/tcp")" 1.5
row "ib_write_bw 1 MiB, one QP" "$(median <"$dir/write1m")" Gb/s "iperf3 TCP over a Linux bridge" "$(median <"$dir/tcp")" 1.5
row "ib_send_lat 8 B, half round trip" "$(median <"$dir/send")" us "UDP ping-pong over a Linux bridge" "$(median <"$dir/udp")" 1.0 time
figure "ib_write_bw 1 MiB, its process" "$program" MiB 256
figure "trib perf, ring of 1 MiB, a rank's process" "$rank" MiB 256
