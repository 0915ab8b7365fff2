#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tests/run.sh: tiers by the heads of scripts, names by T=, repetitions of real-time tests alone, and what fails a run.
# clock: virtual
. "$(dirname "$0")/lib.sh"
unset T BUILD FLAKY build logs
mkdir -p "$tmp/w/tests/e2e" "$tmp/w/tests/hostile" "$tmp/w/tests/python" "$tmp/w/build/tests/room"
cp "$root/tests/run.sh" "$tmp/w/tests"
script() { # script NAME HEAD LINE: a test of tests/
    printf '#!/bin/sh\n# %s\n%s\n' "$2" "$3" >"$tmp/w/tests/$1"
    chmod +x "$tmp/w/tests/$1"
}
run() { # run RC TIER...: the runner, with the exit code that is expected
    local rc=$1 got=0
    shift
    (cd "$tmp/w" && bash tests/run.sh "$@") >"$tmp/run.out" 2>&1 || got=$?
    [ $got = "$rc" ] || fail "run.sh $*: exit code $got, expected $rc: $(cat "$tmp/run.out")"
}
says() { grep -q -- "$1" "$tmp/run.out" || fail "no '$1' in: $(cat "$tmp/run.out")"; }
silent_of() { ! grep -q -- "$1" "$tmp/run.out" || fail "'$1' in: $(cat "$tmp/run.out")"; }
# A script that fails at its first call and passes later ones.
once() { echo "[ -e $tmp/$1.ran ] || { touch $tmp/$1.ran; echo torn; exit 1; }; echo whole"; }

script e2e/exact.sh "clock: virtual" "exit 0"
script e2e/demo.sh "tier: core" "exit 0"
script e2e/mpi.sh "tier: thirdparty" "echo no mpicc; exit 77"
script e2e/verbs.sh "load: any" "exit 0"
script e2e/wire.sh "in real time" "exit 0"
script hostile/kill.sh "load: any" "exit 0"
printf '#!/bin/sh\nexit 0\n' >"$tmp/w/build/tests/room/test_unit"
chmod +x "$tmp/w/build/tests/room/test_unit"

run 0 list
[ "$(awk '{ print $1 "/" $2 "/" $3 }' "$tmp/run.out" | sort | tr '\n' ' ')" = \
    "core/alone/e2e/demo.sh first/cores/e2e/exact.sh first/cores/room/test_unit hostile/pairs/hostile/kill.sh integration/alone/e2e/wire.sh integration/pairs/e2e/verbs.sh thirdparty/alone/e2e/mpi.sh " ] ||
    fail "list: $(cat "$tmp/run.out")"
run 0 first core
says "^3 passed, 0 failed, 0 skipped, 0 flaky"
run 0 e2e
says "^4 passed, 0 failed, 1 skipped, 0 flaky"
says "no mpicc"
run 0 unit
says "^1 passed"
T=verb run 0 first
says "^ok *e2e/verbs.sh"
says "^1 passed"
T=nothing run 2 first
says 'found no test with T="nothing" in its name'
run 2 firs
says "found 'firs', expected first"
run 2
says "found no tier"

# A test of the first tier fails for good.
script e2e/exact.sh "clock: virtual" "$(once exact)"
run 1 first core
says "^FAILED *e2e/exact.sh"
silent_of "again, alone"
rm "$tmp/exact.ran"
script e2e/exact.sh "clock: virtual" "exit 0"

# Real-time tests are run again, with both logs; one that never passes has failed.
script e2e/verbs.sh "load: any" "$(once verbs)"
run 0 integration
says "^flaky: e2e/verbs.sh"
says torn
says whole
says "^1 passed, 0 failed, 0 skipped, 1 flaky"
script e2e/demo.sh "tier: core" "echo never; exit 3"
run 1 core
[ "$(grep -c '^FAILED  *e2e/demo.sh' "$tmp/run.out")" = 3 ] || fail "not three times: $(cat "$tmp/run.out")"
says "^0 passed, 1 failed, 0 skipped, 0 flaky"
script e2e/demo.sh "tier: core" "exit 0"

# The third time by tests/flaky.txt fails the run, and so do three tests in one run.
rm "$tmp/verbs.ran"
printf '2026-01-01 e2e/verbs.sh late\n2026-01-02 e2e/verbs_long.sh late\n' >"$tmp/w/tests/flaky.txt"
run 0 integration
rm "$tmp/verbs.ran"
echo '2026-01-03 e2e/verbs.sh late' >>"$tmp/w/tests/flaky.txt"
run 1 integration
says "flaky for the third time, by tests/flaky.txt: e2e/verbs.sh"
rm "$tmp/w/tests/flaky.txt" "$tmp/verbs.ran"
script e2e/a.sh "load: any" "$(once a)"
script e2e/b.sh "in real time" "$(once b)"
run 1 integration
says "^1 passed, 3 failed, 0 skipped, 0 flaky"

# Three flaky ones in several runs.
rm -f "$tmp"/*.ran "$tmp/w/tests/e2e/b.sh"
FLAKY=$tmp/flaky run 0 integration
says "^1 passed, 0 failed, 0 skipped, 2 flaky"
rm -f "$tmp"/*.ran "$tmp/w/tests/e2e/a.sh"
FLAKY=$tmp/flaky run 1 integration
says "flaky: 3 tests, at most 2 may be: e2e/a.sh e2e/verbs.sh e2e/verbs.sh"
