#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Virtual time: how the cost of a frame grows with the fabric, and what data costs.
#
# - Events are arrivals of frames, on every link that they take, a second of CPU time of the operations; start-up is not counted
#   (trib-sim says so at its end). The same ring on 1,024 GPUs and on 8; what a run does not end within --max-wall it leaves.
# - Payload bytes are those that a ring delivers into receivers' memory, 2(N-1)/N of the vector for each of 8 GPUs, a second of CPU
#   time of the timed operations, against memcpy of as many between buffers of those sizes (bench_sim.c).
# - By all cores: wall time of the operations on 256 GPUs, against that of one thread.
# Two rounds in turn, the better one of each: others on the machine only ever make it slower. The first two are by one thread.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/lib.sh
BUILD=${BUILD:-build}
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1} # as trib sim has it

# sim FIELD CONF ARG...: of trib-sim's last line, the word before FIELD
sim() {
    local field=$1 conf=$2 err
    shift 2
    err=$("$BUILD/trib-sim" "conf/$conf.conf" all_reduce --algo ring --place out "$@" 2>&1 >/dev/null)
    sed -n "s|.* simulated in .* \([0-9.]*\) $field.*|\1|p" <<<"$err" | grep . ||
        { echo "bench_sim: $(tail -n 1 <<<"$err")" >&2; return 1; }
}
best() { sort -g | tail -n 1; }

size=256M gpus=1024 wall=60 data=64 shared=8 rounds=2
[ -z "${BENCH_QUICK:-}" ] || { size=64M gpus=128 wall=5 data=16 shared=1 rounds=1; }
for ((k = 0; k < rounds; k++)); do
    sim 'M frames/s' h100-superpod-1024 -g 8 -b $size -e $size -w 0 --payload none --threads 1 || exit 1
done >"$BUILD/bench_sim.few"
sim 'M frames/s' h100-superpod-1024 -g $gpus -b $size -e $size -w 0 --payload none --threads 1 --max-wall $wall >"$BUILD/bench_sim.many" || exit 1
row "trib sim, frames a second, $gpus GPUs" "$(best <"$BUILD/bench_sim.many")" M/s "the same ring on 8" "$(best <"$BUILD/bench_sim.few")" 0.5

payload=$((4 * 8 * data * 1048576 * 14 / 8)) # four times, 8 GPUs
for ((k = 0; k < rounds; k++)); do
    s=$(sim 's of CPU time' h100-node -g 8 -b ${data}M -e ${data}M -w 1 -n 4 -c 0) || exit 1
    awk -v b=$payload -v s="$s" 'BEGIN { printf "%.4f\n", b / s / 1e9 }' >>"$BUILD/bench_sim.data"
    "$BUILD/tests/bench/bench_sim" 8 $((data * 1048576)) $payload | awk '{ printf "%.4f\n", $1 / 1e9 }' >>"$BUILD/bench_sim.copy"
done
row "trib sim with data, ring of 8 GPUs, $data MiB" "$(best <"$BUILD/bench_sim.data")" GB/s "memcpy of the payload" "$(best <"$BUILD/bench_sim.copy")" 0.25

if [ "$(nproc)" -gt 1 ]; then
    for ((k = 0; k < rounds; k++)); do
        for threads in 0 1; do
            sim 's by [0-9]* thread' h100-superpod-1024 -g 256 -b ${shared}M -e ${shared}M -w 0 --payload none --threads $threads \
                >>"$BUILD/bench_sim.threads$threads" || exit 1
        done
    done
    row "trib sim, wall time of the ring of 256, all cores" "$(sort -g "$BUILD/bench_sim.threads0" | head -n 1)" s "one thread" \
        "$(sort -g "$BUILD/bench_sim.threads1" | head -n 1)" 1.5 time
else
    skipped "trib sim, wall time of the ring of 256, all cores" "one core"
fi
rm -f "$BUILD"/bench_sim.{few,many,data,copy,threads0,threads1}
