#!/usr/bin/env bash
# Runs every benchmark, prints a table, writes $BUILD/bench.json: a list of {name, value, unit, reference, reference_value, ratio, target}.
set -u
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT

"$build/tests/bench/bench_reduce" >>"$lines" || exit 1
tests/bench/forward.sh >>"$lines" || exit 1

grep '^{' "$lines" | awk 'BEGIN { print "[" } { printf "%s  %s", (NR > 1 ? ",\n" : ""), $0 } END { print "\n]" }' >"$build/bench.json"
printf '%-40s %14s %-9s %14s  %6s  %s\n' what value unit reference ratio against
sed -n 's/.*"name": *"\([^"]*\)", *"value": *\([^,]*\), *"unit": *"\([^"]*\)", *"reference": *"\([^"]*\)", *"reference_value": *\([^,]*\), *"ratio": *\([^,]*\),.*/\1|\2|\3|\5|\6|\4/p' "$lines" |
    awk -F'|' '{ printf "%-40s %14.2f %-9s %14.2f  %6.3f  %s\n", $1, $2, $3, $4, $5, $6 }'
echo "written: $build/bench.json"
