#!/usr/bin/env bash
# Processes and their descriptors: children of multiprocessing have devices of their own, what they inherit is refused by name and
# harms nobody, and a program that closes all its descriptors keeps its connections and its files.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3 # the system's: pyverbs is a package of it
$python -c 'import pyverbs.device' 2>/dev/null || skip "no python3-pyverbs"
check=$root/tests/tools/fork_check.py

sed 's/^name/slots_per_host = 8;\nname/' "$conf/two-hosts.conf" >"$tmp/fork.conf"
trib up "$tmp/fork.conf" --dilation 1 >/dev/null || fail "no fabric"
for how in "fork no" "fork yes" "spawn yes"; do
    # shellcheck disable=SC2086
    timeout 60 "$root/scripts/trib" exec h0 -- $python "$check" children $how >"$tmp/children.out" 2>&1 || fail "children, $how"
    has_not 'tributary:' "$tmp/children.out"
done
timeout 60 "$root/scripts/trib" exec h0 -- $python "$check" inherited >"$tmp/inherited.out" 2>&1 || fail "inherited"
has 'found a device that its parent opened before fork\(\), expected one that this process opened itself' "$tmp/inherited.out"
timeout 60 "$root/scripts/trib" exec h0 -- $python "$check" closed >"$tmp/closed.out" 2>&1 || fail "closed"
has 'files at exit: 0' "$tmp/closed.out"
grep -q '^tx_packets [1-9]' "$run"/*/port/h0.0.0.lock || fail "no counters of a program that closed all descriptors"
