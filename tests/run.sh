#!/usr/bin/env bash
# Runs the tests: run.sh unit | e2e | all. A line each, the output of what failed, and a closing line with the counts.
set -u
cd "$(dirname "$0")/.."
build=${BUILD:-build}
passed=0 failed=0 skipped=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# one NAME SECONDS CMD...: exit 77 means skipped, with the reason as the last line.
one() {
    local name=$1 limit=$2 log="$logs/log" t0 rc
    shift 2
    t0=$(date +%s%N)
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
    rc=$?
    printf '%-7s %-44s %6.1f s\n' "$([ $rc = 0 ] && echo ok || { [ $rc = 77 ] && echo skipped || echo FAILED; })" \
        "$name" "$((($(date +%s%N) - t0) / 1000000))e-3"
    case $rc in
    0) passed=$((passed + 1)) ;;
    77)
        skipped=$((skipped + 1))
        tail -n 1 "$log" | sed 's/^/        /'
        ;;
    *)
        failed=$((failed + 1))
        [ $rc = 124 ] && echo "        did not end within $limit s"
        tail -n 60 "$log" | sed 's/^/        /'
        ;;
    esac
}

unit() {
    local t
    while IFS= read -r t; do
        one "${t#"$build"/tests/}" 300 "$t"
    done < <(find "$build/tests" -type f -name 'test_*' -perm -u+x | sort)
}

e2e() {
    local t
    for t in tests/e2e/*.sh; do
        [ -f "$t" ] && [[ "$(basename "$t")" != lib* ]] && one "${t#tests/}" 240 env TRIB_BUILD="$build" bash "$t"
    done
}

case "${1:-all}" in
unit) unit ;;
e2e) e2e ;;
all) unit; e2e ;;
*) echo "run.sh: found '$1', expected unit, e2e or all" >&2; exit 2 ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
