#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What needs a GPU: kernels against the scalar row on fresh data, compute-sanitizer over them, and four ranks on one GPU with ring and
# SHARP, verified there; and GPUs behind NVSwitches, where there are some. Without one: skipped.
. "$(dirname "$0")/lib.sh"

[ -f "$TRIB_BUILD/tests/fake/libcuda.so.1" ] || skip "no nvcc: this build has no kernels"
"$TRIB_BUILD/tests/host/kernels/test_device" >"$tmp/device.out" 2>&1
case $? in
0) ;;
77) skip "no GPU to test with: $(tail -n 1 "$tmp/device.out")" ;;
*) fail "test_device" ;;
esac
DEVICE_LARGE=1 "$TRIB_BUILD/tests/host/kernels/test_device" >"$tmp/large.out" 2>&1 || fail "test_device with a GiB"
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ -x "$sanitizer" ]; then
    for tool in memcheck racecheck initcheck synccheck; do
        DEVICE_SMALL=1 "$sanitizer" --tool $tool --error-exitcode 9 "$TRIB_BUILD/tests/host/kernels/test_device" >"$tmp/$tool.out" 2>&1 ||
            fail "compute-sanitizer $tool"
    done
else
    echo "no compute-sanitizer: kernels run without it"
fi
perf_ok gpu "$conf/single-switch-4.conf" --mem cuda --algo ring,sharp -b 4K -e 16M -f 16 -n 3 -w 1 --max-wall 10
has_not 'Memory: fake' "$tmp/gpu.out"
trib up "$conf/single-switch-4.conf" --dilation 1000 >/dev/null || fail "no fabric"
perf_ok types --mem cuda -d all -o all -b 12000 -e 12000 -n 1 -w 0
perf_ok all_algos --mem cuda --algo all -b 100 -e 400K -f 4000 -n 2 -w 0
trib down >/dev/null

"$TRIB_BUILD/tests/host/kernels/test_multicast" >"$tmp/multicast.out" 2>&1
case $? in
0)
    for n in 2 4 8; do
        "$TRIB_BUILD/trib-perf" --check-options "$conf/h100-node.conf" -g $n --algo nvls-hw >"$tmp/can.out" 2>&1 || break
        perf_ok nvls_hw "$conf/h100-node.conf" -g $n --algo nvls-hw -d all -o all -b 4 -e 64M -f 16 -n 5
    done
    ;;
77) echo "NVLS: skipped: $(tail -n 1 "$tmp/multicast.out")" ;;
*) fail "test_multicast" ;;
esac
