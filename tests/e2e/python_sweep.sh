#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sweeps of the Python package (tests/tools/sweep_check.py): killed in the middle and run again, finished by trib-sweep, extended, with lines
# that fail and confs that change; its figures from files alone.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
export PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=$tmp/mpl MPLBACKEND=agg
$python -c 'import pandas, libconf, matplotlib' 2>/dev/null || skip "no pandas, libconf or matplotlib for $python (scripts/setup.sh python)"
check() { $python "$root/tests/tools/sweep_check.py" "$@"; }
finished() { grep -L '"error"' "$1"/*.json 2>/dev/null | wc -l; }
some_finished() { [ "$(finished "$1")" -ge 5 ]; }

# Killed in the middle: nothing of it goes on, and what was half written does not count.
$python "$root/tests/tools/sweep_check.py" sweep "$tmp/a" >"$tmp/killed.out" 2>&1 & # no function: a shell of its own would be killed instead
pid=$!
until_true 20 some_finished "$tmp/a" || fail "no simulation ended"
kill -KILL $pid
wait $pid 2>/dev/null
ours() { pgrep -f "$tmp/a/[0-9]*.json" >/dev/null; }
until_true 5 eval '! ours' || fail "simulations of a killed sweep go on"
done=$(finished "$tmp/a")
[ "$done" -lt 48 ] || fail "it was killed too late to be in the middle"
first=$(grep -L '"error"' "$tmp/a"/*.json | head -n 1)
head -c 300 "$first" >"$tmp/half" && mv "$tmp/half" "$first" # a full disk

# trib-sweep does some of the rest, as one task of six; then the sweep all that is missing, and no more.
SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=6 "$root/scripts/trib-sweep" "$tmp/a/list" "$tmp/a" >"$tmp/task.out" 2>&1 || fail "trib-sweep"
found=$(grep -L '"error"' "$tmp"/a/*.json | xargs jq -e '.results' 2>/dev/null | grep -c '^\[')
check sweep "$tmp/a" >"$tmp/rest.out" 2>"$tmp/rest.err" || fail "the rest: $(cat "$tmp/rest.err")"
jq -e --argjson found "$found" '.lines == 48 and .found == $found and .failed == {} and .missing == []' "$tmp/rest.out" >/dev/null || fail "found $found: $(cat "$tmp/rest.out")"
has "sweep: 48 of 48 simulations \($found from before\)" "$tmp/rest.err"
check sweep "$tmp/a" >"$tmp/again.out" 2>"$tmp/again.err" || fail "again"
jq -e '.found == 48 and .simulations_s == 0' "$tmp/again.out" >/dev/null || fail "ran again: $(cat "$tmp/again.out")"
"$root/scripts/trib-sweep" --merge "$tmp/a/list" "$tmp/a" >"$tmp/merged.json" || fail "trib-sweep --merge"

# The same rows as those of a list that trib-sweep ran alone (workers=0 writes it), and of its merged file.
check sweep "$tmp/b" workers=0 >"$tmp/list.out" 2>&1 || fail "workers=0"
jq -e '.lines == 48 and .found == 0 and (.missing | length) == 48' "$tmp/list.out" >/dev/null || fail "workers=0: $(cat "$tmp/list.out")"
"$root/scripts/trib-sweep" "$tmp/b/list" "$tmp/b" >"$tmp/task.out" 2>&1 || fail "trib-sweep of the list"
check read "$tmp/a" >"$tmp/a.csv" && check read "$tmp/b" >"$tmp/b.csv" || fail "read"
cmp "$tmp/a.csv" "$tmp/b.csv" || fail "a resumed sweep and trib-sweep differ"
[ "$(wc -l <"$tmp/a.csv")" = 193 ] && [ "$(check read "$tmp/merged.json" | wc -l)" = 193 ] || fail "rows: $(wc -l <"$tmp/a.csv")"

# More algorithms, one of which is none: only the new lines run, the wrong ones are named, the others are there.
check sweep "$tmp/a" algos=ring,sharp,rong,tree >"$tmp/more.out" 2>"$tmp/more.err" || fail "more algorithms"
jq -e '.lines == 96 and .found == 48 and (.failed | length) == 24 and .missing == []' "$tmp/more.out" >/dev/null || fail "more: $(cat "$tmp/more.out")"
has 'sweep: failed: trib sim .*--algo rong .*: trib-sim: --algo: found "rong"' "$tmp/more.err"
has 'UserWarning: 24 of 96 simulations failed' "$tmp/more.err"
# Results of another conf by this name are none.
sed -i 's/100Gb/50Gb/' "$tmp/a/slow.conf"
check sweep "$tmp/a" workers=0 >"$tmp/changed.out" 2>&1
jq -e '.found == 48' "$tmp/changed.out" >/dev/null || fail "the sweep writes its own conf: $(cat "$tmp/changed.out")"
touch "$tmp/a/loss_1_%.conf" && sed -i 's/"sha256": "./&x/' "$tmp/a/00000.json"
check sweep "$tmp/a" workers=0 >"$tmp/changed.out" 2>&1
jq -e '.found == 47 and (.missing | length) == 1' "$tmp/changed.out" >/dev/null || fail "a result of another file counts: $(cat "$tmp/changed.out")"
[ ! -e "$tmp/a/00000.json" ] || fail "left results of another conf for trib-sweep"

mkdir "$tmp/png"
check figures "$tmp/b" "$tmp/png" >"$tmp/figures.out" 2>&1 || fail "figures: $(cat "$tmp/figures.out")"
[ "$(find "$tmp/png" -name "*.png" -size +4k | wc -l)" = 9 ] || fail "figures: $(ls -l "$tmp/png")"
