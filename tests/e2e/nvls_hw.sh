#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# All-reduces by the NVSwitches of this machine's own GPUs (--algo nvls-hw) beside the emulated ones: with the tests' own driver, whose
# GPUs have multicast memory or lack what the words say, and the explanations on a machine that has none of it.
# load: any
. "$(dirname "$0")/lib.sh"

fake=$TRIB_BUILD/tests/fake perf=$TRIB_BUILD/trib-perf
# Refused before a fabric is started, in words: refused NAME REASON ARG...
refused() {
    local name=$1 reason=$2
    shift 2
    trib perf "$conf/rail-2x4.conf" "$@" >"$tmp/$name.out" 2>&1
    [ $? = 2 ] || fail "$name: expected exit code 2"
    has "$reason" "$tmp/$name.out"
    [ -e "$run" ] && fail "$name started a fabric"
    true
}
if [ ! -f "$fake/libcuda.so.1" ]; then
    refused none 'nvls-hw: this program was built without CUDA: make found no nvcc' --algo nvls-hw
    skip "no nvcc: this build says so and has no kernels"
fi
if ! ldconfig -p | grep -q libcuda.so.1; then
    refused none 'nvls-hw: no CUDA driver on this machine' --algo nvls-hw
    "$TRIB_BUILD/tests/host/kernels/test_multicast" >"$tmp/unit_none.out" 2>&1
    [ $? = 77 ] || fail "test_multicast without a driver"
fi
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

"$TRIB_BUILD/tests/host/kernels/test_multicast" >"$tmp/multicast.out" 2>&1 || fail "test_multicast"

export TRIB_FAKE_CUDA=devices=8,cc=90,multicast=1
"$TRIB_BUILD/trib-sim" "$conf/rail-2x4.conf" --algo nvls,nvls-hw >"$tmp/sim.out" 2>&1
[ $? = 2 ] || fail "trib sim --algo nvls-hw"
has 'nvls-hw.* is not supported in simulation' "$tmp/sim.out"
refused other 'nvls-hw: found all_gather, expected all_reduce' all_gather --algo nvls-hw
refused type 'nvls-hw: found no type and operation that multimem has' -d int8,fp8_e4m3 --algo nvls-hw
TRIB_ALGO=nvls-hw refused forced 'TRIB_ALGO: nvls-hw: found 8 GPUs, expected 16: one for each rank' -g 16
TRIB_FAKE_CUDA=devices=0 refused no_gpu 'nvls-hw: found 0 GPUs, expected 8: one for each rank' --algo nvls-hw
TRIB_FAKE_CUDA=devices=8,cc=80,multicast=1 refused old 'found compute capability 8.0 .GPU 0, .*, expected 9.0 or later' --algo nvls-hw
TRIB_FAKE_CUDA=devices=8,cc=90 refused alone 'found no multicast objects .GPU 0, .*, expected a GPU behind NVSwitches' --algo nvls-hw

# Both, side by side, in the table and in the JSON.
few=(-b 60000 -e 60000 -g 4 -n 2 -w 1 --max-wall 5)
perf_ok both "$conf/rail-2x4.conf" "${few[@]}" --algo nvls,nvls-hw
has 'GPUs of this machine: 4, fake GPU of the tests' "$tmp/both.out"
has '^# nvls-hw against nvls, out-of-place' "$tmp/both.out"
jq -e '[.results[] | select(.algo == "nvls-hw")] | length == 2 and all(.wrong == 0 and .time_us > 0 and .dilation == 1)' "$tmp/both.json" >/dev/null ||
    fail "rows of nvls-hw"
jq -e '.results | (map(select(.algo == "nvls")) | length) == 2 and (map(.predicted_us) | unique | length) == 1' "$tmp/both.json" >/dev/null ||
    fail "nvls-hw is compared with another model"

# The others run where it cannot, or can only in part.
TRIB_FAKE_CUDA=devices=3,cc=90,multicast=1 perf_ok left "$conf/single-switch-4.conf" "${few[@]}" --algo ring,nvls-hw
has '^# Left out: nvls-hw: found 3 GPUs, expected 4: one for each rank' "$tmp/left.out"
jq -e '.skipped == [{algo: "nvls-hw", reason: "found 3 GPUs, expected 4: one for each rank"}] and (.results | length) == 2' "$tmp/left.json" >/dev/null ||
    fail "what is skipped, in the JSON"
TRIB_FAKE_CUDA=devices=4,cc=90,multicast=1,ready=0 perf_ok not_ready "$conf/single-switch-4.conf" "${few[@]}" --algo ring,nvls-hw
has '^# Left out: nvls-hw: GPU 0: binding memory to the multicast: CUDA_ERROR_SYSTEM_NOT_READY' "$tmp/not_ready.out"
perf_ok types "$conf/single-switch-4.conf" -g 3 -b 2 -e 100K -f 50 -n 2 -d all -o all --algo nvls-hw
has '^# Left out: nvls-hw: [0-9]+ of the [0-9]+ requested pairs of type and operation' "$tmp/types.out"
jq -e '(.results | map([.type, .op]) | unique | length) == 20 and (.skipped | length) == 1' "$tmp/types.json" >/dev/null || fail "types"

# A switch that forgets a GPU makes wrong elements, and a GPU that is lost an error: ends NAME FAKE REASON ALGOS
ends() {
    TRIB_FAKE_CUDA=devices=8,cc=90,multicast=1,$2 timeout 60 "$root/scripts/trib" perf "$conf/single-switch-4.conf" "${few[@]}" --algo "$4" \
        -J "$tmp/$1.json" >"$tmp/$1.out" 2>&1
    [ $? = 1 ] || fail "$1: it did not end, or not as a failed run does"
    has "$3" "$tmp/$1.out"
    [ -e "$run" ] && fail "$1 left $run behind"
    true
}
ends drop drop=2 'Out of bounds values : 30000 FAILED' nvls-hw
ends lost lost=40 'nvls-hw: GPU [0-3]: .*CUDA_ERROR_DEVICE_UNAVAILABLE' nvls-hw
ends lost_beside lost=40 'nvls-hw: GPU [0-3]: .*CUDA_ERROR_DEVICE_UNAVAILABLE' ring,nvls-hw
jq -e '(.results | length) == 2 and (.error | test("UNAVAILABLE"))' "$tmp/lost_beside.json" >/dev/null || fail "rows before the GPU was lost"
ends no_memory memory=4M 'nvls-hw: GPU [0-3]: .*CUDA_ERROR_OUT_OF_MEMORY' nvls-hw
