#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Throughput of two switches on two lcores, each in its own process (a loop is one thread), relative to one alone: 64 B, two
# ports each. Needs four cores, since each has a generator. Rounds alternate; the medians. With fewer, only the engine, in memory, by CPU
# time: then two of them share caches and memory.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
name="forward 64 B on two lcores"
. tests/bench/forwarders.sh
build=$(cd "${BUILD:-build}" && pwd)

# engine CORE: frames a second of CPU time
engine() { taskset -c "$1" "$build/tests/bench/bench_switch" "$dir/conf" "$frames" | awk '{ printf "%.0f\n", 1e9 / $1 }'; }
engines() {
    local k frames=2048000 rounds=3 other
    [ -z "${BENCH_QUICK:-}" ] || frames=512000 rounds=1
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    switch_conf 8 >"$dir/conf"
    for ((k = 0; k < rounds; k++)); do
        engine 0 >>"$dir/one"
        engine 1 >"$dir/other" &
        other=$!
        engine 0 >"$dir/this"
        wait $other
        awk '{ sum += $1 } END { print sum }' "$dir/this" "$dir/other" >>"$dir/two"
    done
    row "$1" "$(median <"$dir/two")" frames/s "one" "$(median <"$dir/one")" 1.7
}
if [ "$(nproc)" -lt 4 ]; then
    skipped "$name" "two switches and their generators need four cores, found $(nproc)"
    [ "$(nproc)" -lt 2 ] || engines "$name, the engine in memory"
    exit 0
fi
dirs=$(mktemp -d)
rounds=5 pids=()
[ -z "${BENCH_QUICK:-}" ] || rounds=2

# pair I: a switch and its generator, which measure on request and print what they forwarded. Ends with its input.
pair() {
    dir=$dirs/$1 forwarder_core=$((2 * $1)) generator_core=$((2 * $1 + 1))
    mkdir "$dir"
    trap forwarders_stop EXIT
    forwarder_start switch 2 && echo ready || exit 1
    while read -r _; do forwarder_measure switch 64 1 0.3 || exit 1; done
}
mkfifo "$dirs"/{in,out}{0,1}
for i in 0 1; do
    pair $i <"$dirs/in$i" >"$dirs/out$i" &
    pids+=($!)
done
exec {in0}>"$dirs/in0" {in1}>"$dirs/in1" {out0}<"$dirs/out0" {out1}<"$dirs/out1"
finish() {
    exec {in0}>&- {in1}>&-
    wait "${pids[@]}"
    rm -rf "$dirs"
}
trap finish EXIT
read -r -t 30 -u $out0 _ && read -r -t 30 -u $out1 _ || { echo "bench_lcores: the switches did not start" >&2; exit 1; }
for ((k = 0; k < rounds; k++)); do
    echo go >&$in0
    read -r -t 20 -u $out0 one || exit 1
    echo "$one" >>"$dirs/one"
    echo go >&$in0
    echo go >&$in1
    read -r -t 20 -u $out0 one && read -r -t 20 -u $out1 two || exit 1
    echo "$((one + two))" >>"$dirs/two"
done
row "$name" "$(median <"$dirs/two")" frames/s "one" "$(median <"$dirs/one")" 1.7
