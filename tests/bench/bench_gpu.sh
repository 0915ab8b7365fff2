#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The hosts' kernels in GPU memory against a copy within it.
set -eu
. tests/bench/lib.sh

code=0
out=$("$BUILD/tests/bench/bench_gpu" "$([ -n "$BENCH_QUICK" ] && echo 64 || echo 256)") || code=$?
if [ $code = 77 ]; then
    skipped "GPU: kernels" "$out"
    exit 0
fi
[ $code = 0 ] || exit $code
while IFS=$'\t' read -r name value unit reference ref; do
    case $name in
    skipped)
        skipped "$value" "$unit"
        continue
        ;;
    *NVSwitches*) target=null ;;
    *"in one pass") target=1.15 ;;
    *"sum of 8"* | *verify) target=0.85 ;;
    *) target=0.90 ;;
    esac
    row "$name" "$value" "$unit" "$reference" "$ref" $target
done <<<"$out"
