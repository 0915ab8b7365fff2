#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tests: run.sh unit | e2e | hostile | all (unit and e2e). A line each, the output of what failed, and a closing line with the counts.
set -u
cd "$(dirname "$0")/.."
build=${BUILD:-build}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs

# one NAME SECONDS CMD...: exit 77 means skipped, with the reason as the last line. Prints all at once, since others may run meanwhile.
one() {
    local name=$1 limit=$2 log t0 rc verdict=FAILED
    shift 2
    log=$(mktemp "$logs/log.XXXXXX")
    t0=$(date +%s%N)
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
    rc=$?
    case $rc in
    0) verdict=ok ;;
    77) verdict=skipped ;;
    esac
    {
        printf '%-7s %-44s %6.1f s\n' $verdict "$name" "$((($(date +%s%N) - t0) / 1000000))e-3"
        case $rc in
        0) ;;
        77) tail -n 1 "$log" | sed 's/^/        /' ;;
        *)
            [ $rc = 124 ] && echo "        did not end within $limit s"
            grep -m 1 '^FAILED' "$log" | sed 's/^/        /' # which the tail may have lost
            tail -n 60 "$log" | sed 's/^/        /'
            ;;
        esac
    } >"$log.told"
    flock "$logs" cat "$log.told"
    echo $verdict >>"$logs/verdicts"
}
export -f one

# A test has at most so many seconds: unit tests 300, end-to-end tests 240. Each is called by its file.
test_of() {
    case $1 in
    *.sh) one "${1#tests/}" 240 env TRIB_BUILD="$build" bash "$1" ;;
    *.py) one "${1#tests/}" 300 env PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 python3 -m unittest "$1" ;;
    *) one "${1#"$build"/tests/}" 300 "$1" ;;
    esac
}
export -f test_of
export build

# End-to-end tests, and attacks. Those with a line "# clock: virtual" run nothing in real time and check no duration, so other load does not change
# what they see: they run as many at once as there are cores, as unit tests do. Those with a line "# load: any" run fabrics in real time, which
# wait most of the time, and check no duration either: two at once. All others run alone, since they measure.
scripts_of() { # scripts_of e2e|hostile virtual|any|alone
    local t
    for t in tests/"$1"/*.sh; do
        [[ "$(basename "$t")" == lib* ]] && continue
        if grep -qx '# clock: virtual' "$t"; then echo "virtual $t"
        elif grep -qx '# load: any' "$t"; then echo "any $t"
        else echo "alone $t"; fi
    done | sed -n "s/^$2 //p"
}

unit_tests() { { find "$build/tests" -type f -name 'test_*' -perm -u+x; find tests/python -name 'test_*.py'; } | sort; }

# Names of files, a line each; they share no names and no time with each other. TEST_SLOT: a number that none has that runs at the same time.
together() { xargs -r -P "$1" --process-slot-var=TEST_SLOT -I{} bash -c 'test_of "$1"' - {}; }
in_real_time() {
    scripts_of "$1" any | together 2
    scripts_of "$1" alone | together 1
}

case "${1:-all}" in
unit) unit_tests | together "$(nproc)" ;;
e2e | hostile) scripts_of "$1" virtual | together "$(nproc)"; in_real_time "$1" ;;
all) { scripts_of e2e virtual; unit_tests; } | together "$(nproc)"; in_real_time e2e ;;
*) echo "run.sh: found '$1', expected unit, e2e, hostile or all" >&2; exit 2 ;;
esac
touch "$logs/verdicts"
count() { grep -cx "$1" "$logs/verdicts"; }
passed=$(count ok) failed=$(count FAILED)
echo "$passed passed, $failed failed, $(count skipped) skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
