#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process of a host writes nonsense into every word that it shares with others (page.c), truncates and grows what it can, and
# overwrites what the run directory has for all. Beside it a job of other hosts stays exact, and every switch process lives.
. "$(dirname "$0")/../e2e/lib.sh"

name=leaf-spine-8-procs
page=$TRIB_BUILD/tests/hostile/page
trib up $name --dilation 4000 >/dev/null || fail "no fabric"
pids=$(head -qn 1 "$run/$name"/proc/*.pid)
alive() { for p in $pids; do kill -0 "$p" 2>/dev/null || fail "a switch process has ended: $(trib status | grep dead)"; done; }

perf_ok job $name -g 4 --algo ring,sharp -b 64K -e 64K -n 3 --max-wall 8 &
job=$!
# The file that all processes mapped before: whoever may write the directory can do the rest to himself.
[ ! -s "$run/$name/shared" ] || { sleep 1; : >"$run/$name/shared"; }
trib exec h7 -- "$page" 4 >"$tmp/page.out" 2>&1 &
attack=$!
wait $attack || fail "the attack did not take place: $(cat "$tmp/page.out")"
alive
has '^[1-9][0-9]* areas can be written, [1-9][0-9]* cannot, 0 can be resized' "$tmp/page.out"
while kill -0 $job 2>/dev/null; do
    timeout 20 "$root/scripts/trib" exec h7 -- "$page" 1 rings >"$tmp/rings.out" 2>&1
    alive
done
wait $job || fail "the job of other hosts failed: $(tail -n 5 "$tmp/job.out")"
alive
perf_ok after $name -g 8 --algo ring -b 64K -e 64K -n 2 --max-wall 10
timeout 10 "$root/scripts/trib" status >"$tmp/status.out" || fail "no status"
has 'dilation 4000$' "$tmp/status.out"
trib down >/dev/null || fail "down"
