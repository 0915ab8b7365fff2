#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes and their descriptors: children of multiprocessing have devices of their own, what they inherit is refused by name and
# harms nobody, and a program that closes all its descriptors keeps its connections and its files.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3 # the system's: pyverbs is a package of it
$python -c 'import pyverbs.device' 2>/dev/null || skip "no python3-pyverbs"
check=$root/tests/tools/fork_check.py

sed 's/^name/slots_per_host = 80;\nname/' "$conf/two-hosts.conf" >"$tmp/fork.conf"
trib up "$tmp/fork.conf" --dilation 1 >/dev/null || fail "no fabric"
for how in "fork no" "fork yes" "spawn yes" "fork no 72"; do
    # shellcheck disable=SC2086
    timeout 60 "$root/scripts/trib" exec h0 -- $python "$check" children $how >"$tmp/children.out" 2>&1 || fail "children, $how"
    has_not 'tributary:' "$tmp/children.out"
done
timeout 60 "$root/scripts/trib" exec h0 -- $python "$check" inherited >"$tmp/inherited.out" 2>&1 || fail "inherited"
has 'found a device that its parent opened before fork\(\), expected one that this process opened itself' "$tmp/inherited.out"
timeout 60 "$root/scripts/trib" exec h0 -- $python "$check" closed >"$tmp/closed.out" 2>&1 || fail "closed"
has 'files at exit: 0' "$tmp/closed.out"
grep -q '^tx_packets [1-9]' "$run"/*/port/h0/0.0.lock || fail "no counters of a program that closed all descriptors"

# Beyond what the conf allows a process is refused by name, and the others are as they were.
trib down >/dev/null
sed 's/^name/slots_per_host = 2;\nname/' "$conf/two-hosts.conf" >"$tmp/few.conf"
trib up "$tmp/few.conf" --dilation 1 >/dev/null || fail "no fabric"
mkfifo "$tmp/go"
trib exec h0 -- $python -c 'import os, sys
from pyverbs.device import Context
n = [os.fork(), os.fork()] # four processes
try:
    c = Context(name="trib0")
    print("opened", flush=True)
except Exception as e:
    print("refused", flush=True)
open(sys.argv[1]).read()' "$tmp/go" >"$tmp/few.out" 2>&1 &
answered() { [ "$(grep -c -e opened -e refused "$tmp/few.out")" = 4 ]; }
until_true 20 answered || fail "four processes of one host"
true >"$tmp/go"
[ "$(grep -c opened "$tmp/few.out")" = 2 ] || fail "two slots, opened by $(grep -c opened "$tmp/few.out")"
has 'h0: all 2 process slots of its NIC are in use, expected a free one \(slots_per_host in the conf file, at most 250\)' "$tmp/few.out"
