#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the benchmarks, prints a table and writes $BUILD/bench.json. usage: tests/bench/run.sh [--quick] [NAME...]
#
# A benchmark is any tests/bench/bench_NAME.sh. It prints its rows by lib.sh, each measured against a reference of the same run; in
# BENCH_QUICK=1 it does with less: fewer rounds, fewer sizes, a few seconds in all. Nothing is asserted: a ratio below its target is
# marked, and the exit code is 1 only where a benchmark could not run to its end.
set -u
cd "$(dirname "$0")/../.."
export BUILD=${BUILD:-build} BENCH_QUICK=${BENCH_QUICK:-}
if [ "${1:-}" = --quick ]; then
    BENCH_QUICK=1
    shift
fi
names=("$@")
[ ${#names[@]} -gt 0 ] || for f in tests/bench/bench_*.sh; do f=${f##*/bench_}; names+=("${f%.sh}"); done

rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
code=0
printf '%-52s %12s %-9s %12s %7s %7s  %s\n' benchmark value unit baseline ratio target 'the baseline is'
for name in "${names[@]}"; do
    [ -x "tests/bench/bench_$name.sh" ] || { echo "bench: found '$name', expected one of: $(cd tests/bench && echo bench_*.sh | sed 's/bench_//g; s/\.sh//g')" >&2; exit 2; }
    "tests/bench/bench_$name.sh" | tee -a "$rows" | jq -r --unbuffered '
        def n: if . == null then "-" elif . >= 1000 then (. | round | tostring) else (. * 1000 | round / 1000 | tostring) end;
        if .skipped then [.name, "skipped: " + .skipped] else
        [.name, (.value | n), .unit, (.reference_value | n), (.ratio | n),
         (.target | n) + (if .met == false then "!" else "" end), .reference] end | @tsv' |
        while IFS=$'\t' read -r what value unit reference ratio target of; do
            if [ -n "$unit" ]; then
                printf '%-52s %12s %-9s %12s %7s %7s  %s\n' "$what" "$value" "$unit" "$reference" "$ratio" "$target" "$of"
            else
                printf '%-52s %s\n' "$what" "$value"
            fi
        done
    [ "${PIPESTATUS[0]}" = 0 ] || { echo "bench: bench_$name.sh failed" >&2; code=1; }
done
jq -s . "$rows" >"$BUILD/bench.json" && echo "written: $BUILD/bench.json"
exit $code
