#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every fuzz target for FUZZ_SECONDS from the seeds in corpus/<target>; what it finds new stays in the build folder.
# A finding ends with its input and the command that replays it.
set -u
cd "$(dirname "$0")/../.."
build=${BUILD:-build-fuzz}
seconds=${FUZZ_SECONDS:-30}
passed=0 failed=0
for t in "$build"/fuzz/fuzz_*; do
    [ -x "$t" ] && [ -f "$t" ] || continue
    name=$(basename "$t")
    case "$name" in *.*) continue ;; esac
    work=$build/corpus/$name
    mkdir -p "$work" "tests/fuzz/corpus/$name"
    # DPDK keeps its pools for the whole run: leaks are looked for by the tests, not here.
    if ASAN_OPTIONS=detect_leaks=0 "$t" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
        -artifact_prefix="$work/" "$work" "tests/fuzz/corpus/$name" >"$build/$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name: $(grep -o '^#[0-9]*.*DONE.*' "$build/$name.log" | tail -n 1)"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        tail -n 30 "$build/$name.log" | sed 's/^/        /'
    fi
done
rmdir tests/fuzz/corpus/* 2>/dev/null
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
