#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sums of held payloads by the aggregation node's kernels, beside one pass over plain arrays.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
"${BUILD:-build}/tests/bench/bench_reduce" | while IFS=$'\t' read -r name value which reference; do
    row "$name" "$value" GB/s "sum of plain arrays ($which)" "$reference" 0.90
done
exit "${PIPESTATUS[0]}"
