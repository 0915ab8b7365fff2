#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An aggregation node of eight children, beside forwarding the same frames through the same switch; both without ports, in memory.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
"${BUILD:-build}/tests/bench/bench_an" | while IFS=$'\t' read -r name value reference; do
    target=0.50
    case $name in *without*) target=null ;; esac # forwarding moves no byte then
    row "$name" "$value" GB/s "forwarding of the same frames" "$reference" $target
done
exit "${PIPESTATUS[0]}"
