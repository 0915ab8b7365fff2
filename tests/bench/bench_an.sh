#!/usr/bin/env bash
# An aggregation node of eight children, beside forwarding the same frames through the same switch; both without ports, in memory.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
"${BUILD:-build}/tests/bench/bench_an" | while IFS=$'\t' read -r name value reference; do
    row "$name" "$value" GB/s "forwarding of the same frames" "$reference" 0.50
done
exit "${PIPESTATUS[0]}"
