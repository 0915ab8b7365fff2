#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# CRC-32 for the ICRC, beside DPDK's of the same bytes.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
"${BUILD:-build}/tests/bench/bench_icrc" | while IFS=$'\t' read -r name value reference; do
    row "$name" "$value" GB/s "rte_net_crc, the fastest vector unit" "$reference" 0.90
done
exit "${PIPESTATUS[0]}"
