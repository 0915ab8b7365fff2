#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in GPU memory, with the tests' own driver instead of NVIDIA's (tests/fake/cuda.c): its streams are slow, and neither its
# memory nor unpinned memory can be dereferenced. Each injected failure ends with a message on every rank.
# load: any
. "$(dirname "$0")/lib.sh"

fake=$TRIB_BUILD/tests/fake
if [ ! -f "$fake/libcuda.so.1" ]; then
    trib perf "$conf/single-switch-4.conf" --mem cuda -n 1 >"$tmp/none.out" 2>&1 && fail "--mem cuda without CUDA"
    has 'built without CUDA: make found no nvcc' "$tmp/none.out"
    skip "no nvcc: this build says so and has no kernels"
fi
if ! ldconfig -p | grep -q libcuda.so.1; then
    trib perf "$conf/single-switch-4.conf" --mem cuda -n 1 >"$tmp/none.out" 2>&1 && fail "--mem cuda without a driver"
    has 'no CUDA driver on this machine' "$tmp/none.out"
fi
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# A program without GPU memory is refused before anything starts.
"$TRIB_BUILD/trib-perf" --check-options "$conf/h100-node.conf" --mem cuda --algo nvls >"$tmp/nvls.out" 2>&1
[ $? = 2 ] || fail "nvls with --mem cuda"
has 'found nvls, expected .* with --mem cuda: NVSwitches do not reach memory that is staged' "$tmp/nvls.out"
"$TRIB_BUILD/trib-sim" "$conf/single-switch-4.conf" --mem cuda >"$tmp/sim.out" 2>&1
[ $? = 2 ] || fail "trib sim --mem cuda"
has '--mem is not supported in simulation' "$tmp/sim.out"

"$TRIB_BUILD/tests/host/kernels/test_device" >"$tmp/device.out" 2>&1 || fail "test_device"

# Every rank reports the reason, the job ends, and the fabric leaves nothing behind: fails NAME FAKE REASON [options]
fails() {
    local name=$1 fake_says=$2 reason=$3 r
    shift 3
    TRIB_FAKE_CUDA=$fake_says timeout 60 "$root/scripts/trib" perf "$conf/single-switch-4.conf" --mem cuda -n 2 -w 0 --max-wall 5 "$@" \
        >"$tmp/$name.out" 2>&1
    [ $? = 1 ] || fail "$name: it did not end, or not as a failed run does"
    for r in 0 1 2 3; do
        has "rank $r .*$reason" "$tmp/$name.out"
    done
    [ -e "$run" ] && fail "$name left $run behind"
    true
}
fails no_device devices=0 'no GPU 0: this machine has 0'
fails no_such_device devices=2 'no GPU 5: this machine has 2' --mem cuda:5
fails no_memory memory=2M,host=h2 'cannot allocate buffers: .*CUDA_ERROR_OUT_OF_MEMORY' -b 4M -e 4M
fails no_workspace memory=3M,host=h1 'a workspace of .*CUDA_ERROR_OUT_OF_MEMORY' reduce -b 1M -e 1M -o max --algo all
fails lost_while_filling lost=3,host=h3 'CUDA_ERROR_DEVICE_UNAVAILABLE'
fails lost_in_ring lost=60,host=h2 'rank 2 .h2.: GPU 0: .*CUDA_ERROR_DEVICE_UNAVAILABLE' -b 4M -e 4M --algo ring
fails lost_in_sharp lost=70,host=h0,delay=2000 'rank 0 .h0.: GPU 0: .*CUDA_ERROR_DEVICE_UNAVAILABLE' -b 4M -e 4M --algo sharp

export TRIB_FAKE_CUDA=delay=300
perf_ok report "$conf/single-switch-4.conf" --mem cuda -b 1 -e 3M -f 1700 -n 3 -w 0 --max-wall 3
has 'Memory: fake GPU of the tests, messages staged through pinned host memory .dma-buf: .*not supported; peer memory: Bad address' "$tmp/report.out"
has 'meas/model +link/model +staging +dilation' "$tmp/report.out"
jq -e '[.results[] | select(.size_bytes > 1000)] | length > 3 and all(.staging_us > 0)' "$tmp/report.json" >/dev/null ||
    fail "no staging_us in the JSON"
unset TRIB_FAKE_CUDA

trib up "$conf/leaf-spine-8.conf" --dilation 1000 >/dev/null || fail "no fabric"
perf_ok types --mem cuda -d all -o sum,avg,bxor,minloc -b 12000 -e 12000 -n 1 -w 0
perf_ok odd --mem cuda -g 5 -d half -b 2 -e 300000 -f 7 -n 2 -w 0
perf_ok all_algos --mem cuda --algo all -b 100 -e 400K -f 4000 -n 2 -w 0
TRIB_FAKE_CUDA=dmabuf=1 perf_ok reached --mem cuda --algo all -b 100 -e 400K -f 4000 -o avg -n 2 -w 0
has 'Memory: fake GPU of the tests, sent from there .dma-buf., what arrives is staged' "$tmp/reached.out"
perf_ok several_on_a_host --mem cuda -g 16 -d double -o avg -b 64K -e 64K -n 2 -w 0
perf_ok one --mem cuda -g 1 -b 4K -e 4K -n 2
for c in reduce broadcast all_gather reduce_scatter alltoall gather scatter sendrecv barrier; do
    perf_ok "$c" "$c" --mem cuda --algo all -g 6 -r "$([ $c = reduce ] && echo 5 || echo 0)" -b 200 -e 120K -f 600 -n 2 -w 0
done
no_repeats
