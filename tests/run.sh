#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tests: run.sh TIER..., a line each, the output of what failed, the ten longest, and a closing line with the counts.
#
#   first        unit tests (C, Python) and end-to-end tests in virtual time
#   core         real-time tests that everybody should have run: a fabric, collectives, verbs programs, a kill, several users
#   integration  the other real-time tests, and those in virtual time that take long
#   thirdparty   programs of others: MPI, UCX, PyTorch, Slurm
#   hostile      attacks of one process or user on others
#   unit, e2e    unit tests alone; tests/e2e, of any tier
#   list         prints the tier, the way it runs and the name of each test, and runs none
#
# T=TEXT: only those whose name has TEXT in it, whatever tier they are of.
#
# The head of a script says what it is. "# clock: virtual": it runs nothing in real time and checks no duration, so other load does not change
# what it sees: it is of the first tier, and runs beside as many others as there are cores, as unit tests do. "# load: any": it runs
# fabrics in real time, which wait most of the time, and checks no duration either: two at once. All others run alone, since they measure.
# Those in real time are of integration. "# tier: TIER" names another one: core, thirdparty, or integration where one in virtual time
# takes long.
#
# A real-time test that fails is run again alone, at most twice: one that passes then is "flaky", and both logs are shown. Three of them fail
# the run (FLAKY=FILE: of all runs that name it), and so does one that tests/flaky.txt has twice already. Tests of the first tier are
# never repeated.
set -u
cd "$(dirname "$0")/.."
build=${BUILD:-build}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export build logs

# one NAME SECONDS CMD...: exit 77 means skipped, with the reason as the last line. Prints all at once, since others may run meanwhile.
one() {
    local name=$1 limit=$2 log t0 seconds rc verdict=FAILED
    shift 2
    log=$(mktemp "$logs/log.XXXXXX")
    t0=$(date +%s%N)
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
    rc=$?
    seconds=$(printf '%.1f' "$((($(date +%s%N) - t0) / 1000000))e-3")
    case $rc in
    0) verdict=ok ;;
    77) verdict=skipped ;;
    esac
    {
        printf '%-7s %-44s %6.1f s\n' $verdict "$name" "$seconds"
        case $rc in
        0) [ -z "${AGAIN:-}" ] || tail -n 60 "$log" | sed 's/^/        /' ;;
        77) tail -n 1 "$log" | sed 's/^/        /' ;;
        *)
            [ $rc = 124 ] && echo "        did not end within $limit s"
            grep -m 1 '^FAILED' "$log" | sed 's/^/        /' # which the tail may have lost
            tail -n 60 "$log" | sed 's/^/        /'
            ;;
        esac
    } >"$log.told"
    flock "$logs" cat "$log.told"
    echo "$verdict $seconds $name" >>"$logs/verdicts"
    [ $verdict != FAILED ]
}
export -f one

# A test has at most so many seconds: unit tests 300, end-to-end tests 240. Each is called by its file.
name_of() { local name=${1#"$build"/}; echo "${name#tests/}"; }
test_of() {
    case $1 in
    *.sh) one "$(name_of "$1")" 240 env TRIB_BUILD="$build" bash "$1" ;;
    *.py) one "$(name_of "$1")" 300 env PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 python3 -m unittest "$1" ;;
    *) one "$(name_of "$1")" 300 "$1" ;;
    esac
}
export -f name_of test_of

# All tests: the tier, the way it runs (cores, pairs, alone), and the file.
all_tests() {
    local file tier way
    { find "$build/tests" -type f -name 'test_*' -perm -u+x; find tests/python -name 'test_*.py'; } 2>/dev/null | sort | sed 's/^/first cores /'
    for file in tests/e2e/*.sh tests/hostile/*.sh; do
        [[ -f $file && "$(basename "$file")" != lib* ]] || continue
        way=alone tier=$(sed -n 's/^# tier: //p' "$file" | head -n 1)
        if grep -qx '# clock: virtual' "$file"; then way=cores tier=${tier:-first}
        elif grep -qx '# load: any' "$file"; then way=pairs; fi
        [[ $file = tests/hostile/* ]] && tier=hostile
        echo "${tier:-integration} $way $file"
    done
}

chosen() { # chosen TIER...: of all tests
    local tier way file asked
    while read -r tier way file; do
        if [ -n "${T:-}" ]; then
            [[ $(name_of "$file") = *"$T"* ]] && echo "$way $file"
            continue
        fi
        for asked in "$@"; do
            case $asked in
            unit) [[ $file != *.sh ]] ;;
            e2e) [[ $file = tests/e2e/* ]] ;;
            *) [ "$asked" = "$tier" ] ;;
            esac && echo "$way $file" && break
        done
    done
}

# Names of files, a line each; they share no names and no time with each other. TEST_SLOT: a number that none has that runs at the same time.
together() { xargs -r -P "$1" --process-slot-var=TEST_SLOT -I{} bash -c 'test_of "$1" || true' - {}; }
these() { sed -n "s/^$1 //p" "$logs/chosen"; }

# Where three and more have failed, no repetition can make the run pass.
repeat_alone() {
    local name file times
    awk '$1 == "FAILED" { print $3 }' "$logs/verdicts" >"$logs/again"
    [ "$(wc -l <"$logs/again")" -lt 3 ] || return 0
    while read -r name; do
        file=$(these '[ap].*' | grep -x "tests/$name") || continue
        for times in 1 2; do
            echo "again, alone: $name"
            sed -i "\|^FAILED .* $name\$|d" "$logs/verdicts"
            if AGAIN=1 test_of "$file"; then
                echo "flaky: $name: failed, then passed when it ran alone ($times)"
                sed -i "s|^ok \(.*\) $name\$|flaky \1 $name|" "$logs/verdicts"
                break
            fi
        done
    done <"$logs/again"
}

count() { grep -c "^$1 " "$logs/verdicts"; }
flaky_names() { awk '$1 == "flaky" { print $3 }' "$logs/verdicts" | sort; }
often_flaky() { # those that failed too often before
    flaky_names | while read -r name; do
        [ "$(awk -v name="$name" '$2 == name' tests/flaky.txt 2>/dev/null | wc -l)" -ge 2 ] && echo "$name"
    done
}

[ $# -gt 0 ] || { echo "run.sh: found no tier, expected some of first, core, integration, thirdparty, hostile, unit, e2e, or list" >&2; exit 2; }
for tier in "$@"; do
    case $tier in
    first | core | integration | thirdparty | hostile | unit | e2e) ;;
    list) all_tests | while read -r tier way file; do printf '%-11s %-5s %s\n' "$tier" "$way" "$(name_of "$file")"; done; exit 0 ;;
    *) echo "run.sh: found '$tier', expected first, core, integration, thirdparty, hostile, unit, e2e or list" >&2; exit 2 ;;
    esac
done
all_tests | chosen "$@" >"$logs/chosen"
[ -s "$logs/chosen" ] || { echo "run.sh: found no test${T:+ with T=\"$T\" in its name}, expected one of those that 'tests/run.sh list' prints" >&2; exit 2; }
touch "$logs/verdicts"
these cores | together "$(nproc)"
these pairs | together 2
these alone | together 1
repeat_alone

echo "the longest:"
sort -k 2,2nr "$logs/verdicts" | awk 'NR <= 10 { printf "        %-44s %6.1f s\n", $3, $2 }'
flaky=$(count flaky)
flaky_names >>"${FLAKY:-$logs/flaky}"
all_flaky=$(wc -l <"${FLAKY:-$logs/flaky}")
[ "$all_flaky" -lt 3 ] || echo "flaky: $all_flaky tests, at most 2 may be:" $(sort "${FLAKY:-$logs/flaky}")
often=$(often_flaky)
[ -z "$often" ] || echo "flaky for the third time, by tests/flaky.txt:" $often
echo "$(count ok) passed, $(count FAILED) failed, $(count skipped) skipped, $flaky flaky"
[ "$(count FAILED)" -eq 0 ] && [ "$(count ok)" -gt 0 ] && [ "$all_flaky" -lt 3 ] && [ -z "$often" ]
