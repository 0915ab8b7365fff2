#!/usr/bin/env bash
# Frames per second through one trib-switch lcore, beside dpdk-testpmd (macswap) on the same kind of memif ports with the same generator.
# The forwarder has core 0, the generator core 1; three rounds each, alternating, and the medians. Prints JSON objects, one a line.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
build=$(cd "${BUILD:-build}" && pwd)
gen=$build/tests/bench/bench_forward
seconds=${BENCH_SECONDS:-1}
dir=$(mktemp -d)
pids=()
cleanup() {
    # what is stopped takes no TERM before CONT; testpmd has nothing to tidy up
    for p in ${pids[@]+"${pids[@]}"}; do kill "$p" 2>/dev/null; kill -CONT "$p" 2>/dev/null; done
    kill -KILL $testpmd_pid 2>/dev/null
    wait 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

testpmd=$(command -v dpdk-testpmd) || { skipped forward "dpdk-testpmd is not installed (package dpdk-dev)"; exit 0; }

mkfifo "$dir/stdin"
sleep 600 >"$dir/stdin" &
pids+=($!)
# net_memif may crash when a busy peer goes away, as the generator does after each round: testpmd is started again then.
start_testpmd() {
    rm -f "$dir/ta.sock" "$dir/tb.sock"
    "$testpmd" --no-huge --no-pci -m 256 --no-telemetry --lcores '0@1,1@0' --file-prefix "bench$$" \
        --vdev="net_memif0,role=server,socket=$dir/ta.sock,socket-abstract=no" \
        --vdev="net_memif1,role=server,socket=$dir/tb.sock,socket-abstract=no" \
        -- --forward-mode=macswap --auto-start --mbuf-size=4800 --total-num-mbufs=8192 --no-lsc-interrupt -i \
        <"$dir/stdin" >"$dir/testpmd.log" 2>&1 &
    testpmd_pid=$!
    disown $testpmd_pid # net_memif crashes now and then when its peer leaves; the shell need not report it
    pids+=($testpmd_pid)
    for _ in $(seq 100); do
        [ -S "$dir/tb.sock" ] && break
        sleep 0.1
    done
}
start_testpmd
run=$dir/run
mkdir -p "$run"
taskset -c 0 "$build/trib-switch" tests/bench/forward.conf --proc sw --run "$run" >"$dir/switch.log" 2>&1 &
switch_pid=$!
pids+=($switch_pid)
for _ in $(seq 100); do
    [ -S "$run/link/s0:0-h0:0.sock" ] && break
    sleep 0.1
done

# measure WHO BYTES FLOWS: only the one that is measured runs.
measure() {
    if [ "$1" = testpmd ]; then
        kill -STOP $switch_pid
        kill -CONT $testpmd_pid 2>/dev/null
        sleep 0.2 # a crash that was waiting happens now
        kill -0 $testpmd_pid 2>/dev/null || start_testpmd
        taskset -c 1 "$gen" "$dir/ta.sock" "$dir/tb.sock" "$2" "$seconds" "$3"
    else
        kill -STOP $testpmd_pid 2>/dev/null
        kill -CONT $switch_pid
        taskset -c 1 "$gen" "$run/link/s0:0-h0:0.sock" "$run/link/s0:1-h1:0.sock" "$2" "$seconds" "$3"
    fi
}

sizes="64 4096" flows="1 10000" rounds="1 2 3"
[ -z "${BENCH_QUICK:-}" ] || sizes=64 flows=1 rounds=1
for size in $sizes; do
    for flow in $flows; do
        : >"$dir/t" >"$dir/s"
        for _ in $rounds; do
            measure testpmd $size $flow >>"$dir/t" || exit 1
            measure switch $size $flow >>"$dir/s" || { tail -5 "$dir/switch.log" >&2; exit 1; }
        done
        kill -CONT $switch_pid $testpmd_pid 2>/dev/null
        target=0.80
        [ $size = 4096 ] && target=0.95
        row "forward $size B, $flow flow(s)" "$(median <"$dir/s")" frames/s "dpdk-testpmd macswap" "$(median <"$dir/t")" $target
    done
done
