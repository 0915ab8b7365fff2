#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every type and operation comes out exactly, by both algorithms, on one switch and on a tree of depth two; a fabric that was
# not up is gone again afterwards. Nothing is retransmitted or dropped on the way.
# load: any
. "$(dirname "$0")/lib.sh"

perf_ok auto "$conf/single-switch-4.conf" -g 4 -b 100 -e 400 -f 4 -n 2 -w 0 --max-wall 20
[ -e "$run" ] && fail "trib perf left $run behind"

trib up "$conf/leaf-spine-8.conf" --dilation 1000 >/dev/null || fail "no fabric"
perf_ok types -d all -o all -b 12000 -e 12000 -n 1 -w 0
for d in int8 uint8 int32 uint32 int64 uint64 half float double bfloat16; do
    for o in sum prod min max avg; do
        has " +$d +$o " "$tmp/types.out"
    done
done
# odd sizes: one element, one short of a packet, of a message, and one more
perf_ok sizes -d int8 -b 1 -e 40000 -i 4093 -n 1 -w 0
perf_ok odd -g 5 -d half -b 2 -e 300000 -f 7 -n 2 -w 0
perf_ok crowded -g 16 -d double -o max -b 64K -e 64K -n 2 -w 0
perf_ok one -g 1 -b 4K -e 4K -n 2
perf_ok large -b 4M -e 4M -n 2 -w 0
no_repeats
