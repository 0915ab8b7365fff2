#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Other people's programs and test suites on an emulated fabric: run.sh [NAME...]. A line each, the output of what failed; what is not
# installed is skipped with the reason. BUDGET= is the time of all, in seconds: what does not begin within it is skipped, too.
set -u
cd "$(dirname "$0")/../.." || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
left=${BUDGET:-2400} failed=0
[ $# -gt 0 ] || set -- mpi4py ucc sharp_callers nccl_plugin_check torch
for name; do
    test=tests/third_party/$name.sh
    [ -e "$test" ] || test=tests/e2e/$name.sh
    t0=$SECONDS
    if [ "$left" -gt 0 ]; then
        timeout -k 10 "$left" bash "$test" >"$log" 2>&1 </dev/null
        rc=$?
    else
        echo "the ${BUDGET:-2400} s of all are over (BUDGET=)" >"$log"
        rc=77
    fi
    left=$((left - SECONDS + t0))
    case $rc in
    0) printf 'ok      %-14s %5d s  %s\n' "$name" $((SECONDS - t0)) "$(tail -n 1 "$log")" ;;
    77) printf 'skipped %-14s %5d s  %s\n' "$name" $((SECONDS - t0)) "$(tail -n 1 "$log")" ;;
    *)
        printf 'FAILED  %-14s %5d s\n' "$name" $((SECONDS - t0))
        grep -m 1 '^FAILED' "$log" | sed 's/^/        /'
        tail -n 40 "$log" | sed 's/^/        /'
        failed=$((failed + 1))
        ;;
    esac
done
exit $((failed > 0))
