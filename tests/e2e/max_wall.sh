#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# --max-wall bounds a row on a machine that is busy: warm-ups, retries, both places and checks together. What is left out is said.
. "$(dirname "$0")/lib.sh"

busy=()
for i in 1 2 3 4; do
    (while :; do :; done) &
    busy+=($!)
done

# A row may take 10 % and 2 s more (docs/user-guide.md). The command connects and ends its ranks, too: 18 s at most for eight; the check is of both.
timed() { # timed SECONDS EXIT-CODES ARG...
    local most=$1 codes=$2 t0 ms rc
    shift 2
    t0=$(date +%s%N)
    trib perf leaf-spine-8 "$@" -J "$tmp/x.json" >"$tmp/timed.out" 2>&1
    rc=$?
    ms=$((($(date +%s%N) - t0) / 1000000))
    [[ " $codes " == *" $rc "* ]] || fail "trib perf $*: exit code $rc, expected $codes: $(tail -n 5 "$tmp/timed.out")"
    [ $ms -lt $((most * 1000)) ] || fail "trib perf $* took $ms ms, expected at most $most s: $(cat "$tmp/timed.out")"
    has_not 'FAILED' "$tmp/timed.out"
}
trib up leaf-spine-8 >/dev/null || fail "up"
# without a bound such a row takes a minute and more; rows of many operations end early, all ranks after the same one
timed 12 '0 4' --algo ring -b 1M -e 1M -n 1000000 --max-wall 2
has 'cut by --max-wall, out-of-place: .*[0-9]+ of 1000000 iterations|not measured' "$tmp/timed.out"
trib down >/dev/null || fail "down"
# the same at a dilation that is given: one operation of 40 us lasts 40 s, which is said and not waited for
trib up leaf-spine-8 --dilation 1000000 >/dev/null || fail "up"
timed 18 4 --algo ring -b 1M -e 1M --max-wall 2
has 'cut by --max-wall, in-place: not measured' "$tmp/timed.out"
has 'Not measured  *: 2 of 2 runs' "$tmp/timed.out"
[ "$(jq '.not_measured | length' "$tmp/x.json")" = 2 ] || fail "the JSON does not name what was not measured"
trib down >/dev/null || fail "down"
# one that began well within its time, as a model of a machine that keeps up says, is told to end in the middle
trib up leaf-spine-8 --dilation 100 >/dev/null || fail "up"
timed 12 '0 4' --algo sharp -b 64K -e 64K -n 100000 -w 0 --max-wall 2
has 'cut by --max-wall, out-of-place: [0-9]{1,3} of 100000 iterations' "$tmp/timed.out"
trib down >/dev/null || fail "down"
kill "${busy[@]}"
