#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in GPU memory, and switches that refuse or die (the tests' own driver, tests/fake/cuda.c): a refused group's job goes on by the
# hosts; an operation whose switch dies in the middle of it ends by name on every rank, and soon.
. "$(dirname "$0")/lib.sh"

fake=$TRIB_BUILD/tests/fake
[ -f "$fake/libcuda.so.1" ] || skip "no nvcc: this build has no kernels"
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TRIB_FAKE_CUDA=delay=300

name=leaf-spine-8-procs
trib up "$conf/$name.conf" --dilation 1000 >/dev/null || fail "no fabric"
perf_ok refused --mem cuda --algo sharp -b 64K -e 64K -n 2 --window 1
has 'fell back, .*less than one message takes' "$tmp/refused.out"

before=$(total rx_frames)
TRIB_RUN=$run/$name "$TRIB_BUILD/trib-perf" "$conf/$name.conf" --mem cuda --algo sharp -b 1M -e 1M -n 1000000 -w 0 --max-wall 3600 >"$tmp/died.out" 2>&1 &
job=$!
busy() { [ "$(total rx_frames)" -gt $((before + 20000)) ]; }
until_true 30 busy || fail "the run did not get under way"
kill -9 "$(pids_in "$run/$name/proc/spine0.pid")"
t0=$(date +%s%N)
wait $job
[ $? = 1 ] || fail "a run whose switch died must end with 1"
took=$((($(date +%s%N) - t0) / 1000000))
[ $took -lt 20000 ] || fail "took $took ms to end"
for r in 0 1 2 3 4 5 6 7; do
    has "rank $r \(h$r\): .*(spine0|leaf[01])" "$tmp/died.out"
done
