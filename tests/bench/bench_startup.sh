#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How long `trib up` of the demo takes until every port serves, and how long eight ranks after that: started, connected with each other
# and with the aggregation nodes, one small operation each by ring and SHARP, and gone (at the dilation of 1,000 at which ranks connect where
# it is "auto"). Medians. Prints JSON objects, one a line.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
own_fabric
rounds="1 2 3 4 5"
[ -z "${BENCH_QUICK:-}" ] || rounds=1
TIMEFORMAT=%R

for _ in $rounds; do
    { time scripts/trib up conf/leaf-spine-8.conf --dilation 1000 >"$dir/out" 2>&1; } 2>>"$dir/up" || { tail -5 "$dir/out" >&2; exit 1; }
    { time scripts/trib perf conf/leaf-spine-8.conf -b 4K -e 4K -n 1 -w 0 -c 0 >"$dir/out" 2>&1; } 2>>"$dir/ranks" || { tail -5 "$dir/out" >&2; exit 1; }
    scripts/trib down >/dev/null
done
figure "trib up of the demo, to ready" "$(median <"$dir/up")" s 2
figure "eight ranks connected, run and gone" "$(median <"$dir/ranks")" s 2
