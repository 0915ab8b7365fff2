#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tests/chaos.sh keeps its budget whatever a seed does, continues after one that crashes, and reports its results when it is terminated;
# a seed that takes too long fails by name. Tested with a stand-in for trib-sim, and with trib-sim itself.
. "$(dirname "$0")/lib.sh"
mkdir "$tmp/fake"
cat >"$tmp/fake/trib-sim" <<'END'
#!/bin/bash
for ((s = ${2%-*}; s <= ${2#*-}; s++)); do
    printf 'seed %s: a fabric' $s
    [ $s = 3 ] && kill -SEGV $$
    [ $s = 25 ] && exec sleep 1000
    printf ': exact [0.1 ms]\n'
done
END
chmod +x "$tmp/fake/trib-sim"
export BUILD=$tmp/fake SEEDS=45 JOBS=2

t0=$SECONDS
BUDGET=3 bash "$root/tests/chaos.sh" >"$tmp/budget.out" 2>&1 && fail "a crash, but no failure"
[ $((SECONDS - t0)) -le 8 ] || fail "a budget of 3 s took $((SECONDS - t0)) s"
has '^seed 3: a fabric: FAILED: exit code 139 \(SIGSEGV\)$' "$tmp/budget.out"
has 'replay: trib sim --chaos 3$' "$tmp/budget.out"
has '^chaos: 29 of 45 seeds in [3-8] s \(its budget is over; in the middle of seed 25\), 1 failed;' "$tmp/budget.out"

for sig in TERM INT; do
    BUDGET=300 env --default-signal=INT bash "$root/tests/chaos.sh" >"$tmp/$sig.out" 2>&1 & # beside: SIGINT would be ignored
    pid=$!
    sleep 1
    kill -$sig $pid
    until_true 10 eval "! kill -0 $pid" || fail "SIG$sig does not end it"
    wait $pid
    rc=$?
    [ $rc = $((128 + $(kill -l $sig))) ] || fail "SIG$sig: exit code $rc"
    has "^chaos: 29 of 45 seeds in [0-9]+ s \(ended by SIG$sig; in the middle of seed 25\), 1 failed;" "$tmp/$sig.out"
done
[ -z "$(own_processes)" ] || fail "left behind: $(own_processes)"

# A seed has a limit of its own.
"$TRIB_BUILD/trib-sim" --chaos 5 --max-wall 0.0001 >"$tmp/late.out" 2>&1
[ $? = 3 ] || fail "no limit"
has '^seed 5.*: FAILED: no end within 0.0001 s of wall time' "$tmp/late.out"
has 'replay: trib sim --chaos 5$' "$tmp/late.out"
"$TRIB_BUILD/trib-sim" --chaos 5 --max-wall x >"$tmp/bad.out" 2>&1
[ $? = 2 ] || fail "a limit of x"
has '\-\-max-wall: found "x", expected seconds' "$tmp/bad.out"
true
