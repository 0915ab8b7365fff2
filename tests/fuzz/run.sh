#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every fuzz target (FUZZ_TARGETS="memif arp": these) for FUZZ_SECONDS from the seeds in corpus/<target>, as many at a time as there are
# cores; what it finds new stays in the build folder. A finding ends with its input and the command that replays it.
set -u
cd "$(dirname "$0")/../.."
build=${BUILD:-build-fuzz}
seconds=${FUZZ_SECONDS:-30}
# DPDK keeps its pools for the whole run: leaks are looked for by the tests, not here.
export ASAN_OPTIONS=detect_leaks=0

# one TARGET: into its log, and one line about it.
one() {
    local name=$1 work=$build/corpus/$1 log=$build/$1.log input
    mkdir -p "$work"
    if "$build/fuzz/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$build/$name-" "$work" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        awk -v name="$name" '/DONE +cov/ { for (i = 1; i < NF; i++) v[$i] = $(i + 1) } /stat::number_of_executed_units/ { n = $2 }
            END { split(v["corp:"], c, "/")
                  printf "ok      %-16s %9d executions, %5d edges, %6d features, %4d inputs of %s\n", name, n, v["cov:"], v["ft:"], c[1], c[2] }' "$log"
        return 0
    fi
    echo "FAILED  $name"
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    grep -aE '^SUMMARY|runtime error|assertion failed|ERROR: ' "$log" | head -n 5 | sed 's/^/        /'
    if [ -n "$input" ]; then
        echo "        input   $input"
        echo "        replay  ASAN_OPTIONS=detect_leaks=0 $build/fuzz/$name $input"
    else
        tail -n 20 "$log" | sed 's/^/        /'
    fi
    return 1
}

targets=()
for t in "$build"/fuzz/fuzz_*; do
    name=${t##*/}
    [ -x "$t" ] && [ -f "tests/fuzz/$name.c" ] || continue
    [ -z "${FUZZ_TARGETS:-}" ] || [[ " $FUZZ_TARGETS " == *" ${name#fuzz_} "* ]] || continue
    targets+=("$name")
done
export -f one
export build seconds
[ ${#targets[@]} -gt 0 ] || { echo "run.sh: found no target in $build/fuzz, expected those of tests/fuzz" >&2; exit 1; }
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'one {}' | tee "$build/fuzz.results"
failed=$(grep -c '^FAILED' "$build/fuzz.results")
echo "$(grep -c '^ok' "$build/fuzz.results") passed, $failed failed"
[ "$failed" = 0 ] && [ "$(grep -c '^ok' "$build/fuzz.results")" = ${#targets[@]} ]
