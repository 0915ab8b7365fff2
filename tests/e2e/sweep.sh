#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A sweep: a list of simulations dealt out to tasks by mpirun or by what a Slurm array says, results merged; what failed or is missing is
# named, what is finished is not run again.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"
sweep() { "$root/scripts/trib-sweep" "$@"; }

cat >"$tmp/list" <<'END'
# an algorithm, a size, a fabric
two-hosts.conf --algo ring,sharp -b 64K -e 64K

single-switch-4.conf --algo ring -b 64K -e 256K --payload none
  # and one with a seed
leaf-spine-8.conf all_gather --algo ring -b 64K -e 64K --seed 3
END

# a Slurm array of two tasks, numbered from 4 in steps of 2: lines 1 and 3, then line 2
array() { SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=2 sweep "$tmp/list" "$tmp/array" >"$tmp/task.out" 2>&1; }
array 4 || fail "task 4: $(cat "$tmp/task.out")"
has 'task 0 of 2, line 1: trib sim two-hosts' "$tmp/task.out"
has 'task 0 of 2, line 3: trib sim leaf-spine' "$tmp/task.out"
has_not 'line 2' "$tmp/task.out"
sweep --merge "$tmp/list" "$tmp/array" >"$tmp/part.json" 2>"$tmp/merge.out" && fail "merged although a line has no results"
has 'no results of line 2: trib sim single-switch-4' "$tmp/merge.out"
[ "$(jq .simulations "$tmp/part.json")" = 2 ] || fail "what is there was not merged"
array 6 || fail "task 6: $(cat "$tmp/task.out")"
sweep --merge "$tmp/list" "$tmp/array" >"$tmp/array.json" || fail "merge"
jq -e '.simulations == 3 and ([.results[].ranks] | unique == [2, 4, 8]) and ([.results[] | .wrong // 0] | add == 0) and .results[-1].seed == 3
    and ([.results[] | select(.ranks == 4) | .payload] | unique == ["none"])' "$tmp/array.json" >/dev/null || fail "merged: $(jq -c '.results[]' "$tmp/array.json")"
# again: nothing is left to do
array 4 || fail "task 4 again"
has_not 'trib sim' "$tmp/task.out"

# a file that is empty, cut off or no result is none: a full disk leaves such
for bad in '' '{"conf": "a"' '{"results": []} {"results": []}' '{"results": 5}' '{"results": [1]}' '[1]' '{"error": "cut"}'; do
    cp -r "$tmp/array" "$tmp/bad" && printf '%s' "$bad" >"$tmp/bad/00001.json"
    sweep --merge "$tmp/list" "$tmp/bad" >"$tmp/bad.json" 2>"$tmp/merge.out" && fail "merged although a line has '$bad' for results"
    has 'no results of line 2: trib sim single-switch-4' "$tmp/merge.out"
    [ "$(jq .simulations "$tmp/bad.json")" = 2 ] || fail "what is there was not merged beside '$bad'"
    rm -r "$tmp/bad"
done

# by mpirun, three tasks beside each other: the same results, in the order of the list
if command -v mpirun >/dev/null; then
    root_too=
    [ "$(id -u)" = 0 ] && root_too=--allow-run-as-root
    HOME=$tmp timeout -k 5 120 mpirun $root_too --oversubscribe -np 3 "$root/scripts/trib-sweep" "$tmp/list" "$tmp/mpi" >"$tmp/mpi.out" 2>&1 ||
        fail "mpirun: $(cat "$tmp/mpi.out")"
    has 'task 2 of 3, line 3' "$tmp/mpi.out"
    sweep --merge "$tmp/list" "$tmp/mpi" >"$tmp/mpi.json" || fail "merge of mpirun's"
    cmp "$tmp/array.json" "$tmp/mpi.json" || fail "mpirun and array differ"
fi

# a training step is a row of its own beside those of collectives
cat >"$tmp/w.conf" <<'CONF'
name = "small"; device = "h100";
model = { layers = 4; d_model = 512; d_ff = 2048; heads = 8; vocabulary = 4096; };
training = { type = "bf16"; sequence = 512; batch_tokens = 8192; utilisation = "40%"; };
parallel = { tp = 2; dp = 2; zero = 1; microbatches = 4; };
CONF
printf '%s\n' "rail-2x4.conf --workload $tmp/w.conf" 'two-hosts.conf --algo ring -b 64K -e 64K' >"$tmp/steps"
sweep "$tmp/steps" "$tmp/step" >"$tmp/task.out" 2>&1 || fail "a training step: $(cat "$tmp/task.out")"
sweep --merge "$tmp/steps" "$tmp/step" >"$tmp/step.json" || fail "merge of a training step"
jq -e '.simulations == 2 and .results[0].workload == "small" and .results[0].hosts.step_us > 0 and .results[1].algo == "ring"' \
    "$tmp/step.json" >/dev/null || fail "merged: $(cat "$tmp/step.json")"

# values of keys of a conf by one command: all combinations, a table; each figure is that of a conf with the value
sed 's|spine_link = { rate = "400Gb/s"|spine_link = { rate = "100Gb/s"|; s/^mtu .*/mtu = 1024;/' "$conf/leaf-spine-8.conf" >"$tmp/by_hand.conf"
grep -q 'spine_link = { rate = "100Gb/s"' "$tmp/by_hand.conf" || fail "leaf-spine-8.conf has other keys now"
trib sim "$tmp/by_hand.conf" -g 8 --algo ring --place out -b 64K -e 64K -J "$tmp/by_hand.json" >/dev/null 2>&1 || fail "by hand"
vary() { sweep --vary "$@" >"$tmp/vary.out" 2>"$tmp/vary.err"; }
vary spine_link.rate=400Gb/s,100Gb/s --vary mtu=4096,1024 "$tmp/vary" leaf-spine-8 -g 8 --algo ring --place out -b 64K -e 64K ||
    fail "--vary: $(cat "$tmp/vary.err")"
has '^  leaf_spine.spine_link.rate +mtu +collective +algorithm +bytes +place +us +busbw GB/s$' "$tmp/vary.out"
[ "$(wc -l <"$tmp/vary.out")" = 5 ] || fail "not four rows: $(cat "$tmp/vary.out")"
us=$(jq '.results[0].time_us * 1000 | round / 1000' "$tmp/by_hand.json")
has "^  100Gb/s +1024 +all_reduce +ring +65536 +out +$us " "$tmp/vary.out"
sweep --merge "$tmp/vary/list" "$tmp/vary" | jq -e '.simulations == 4' >/dev/null || fail "merge of --vary"
vary spine_link.rate=400Gb/s,200Gb/s "$tmp/vary2" rail-2x4 --workload "$tmp/w.conf" || fail "a step with --vary: $(cat "$tmp/vary.err")"
has '^  rails.spine_link.rate +workload +T_math ms +T_comms: hosts' "$tmp/vary.out"
has '^  200Gb/s +small ' "$tmp/vary.out"
wrong() { # wrong TEXT ARG...
    local text=$1
    shift
    vary "$@"
    [ $? = 2 ] || fail "--vary $*: expected exit code 2: $(cat "$tmp/vary.err")"
    has "$text" "$tmp/vary.err"
}
wrong '"spine_link.rat", expected a key that leaf-spine-8 has: .*leaf_spine.spine_link.rate' spine_link.rat=1 "$tmp/x" leaf-spine-8
wrong '"rate", expected one key of leaf-spine-8, which has leaf_spine.host_link.rate leaf_spine.spine_link.rate$' rate=1 "$tmp/x" leaf-spine-8
wrong 'found "mtu", expected KEY=VALUE' mtu "$tmp/x" leaf-spine-8
wrong "no conf file 'nowhere'" mtu=1024 "$tmp/x" nowhere
wrong 'found mtu twice' mtu=1024 --vary mtu=4096 "$tmp/x" leaf-spine-8
vary spine_link.rate=3apples,400Gb/s "$tmp/vary3" leaf-spine-8 -g 8 --algo ring -b 64K -e 64K && fail "a wrong value ended well"
has 'rate: found "3apples", expected a rate' "$tmp/vary.err"
has '^  400Gb/s +all_reduce' "$tmp/vary.out"

# what fails is named, the others run; a line that was changed is run again
sed -i 's/^single.*/single-switch-4.conf --algo rong/' "$tmp/list"
sweep "$tmp/list" "$tmp/array" >"$tmp/task.out" 2>&1
[ $? = 1 ] || fail "a sweep with a mistake ended well"
has 'line 2 failed: trib-sim: --algo: found "rong"' "$tmp/task.out"
has_not 'line [13]' "$tmp/task.out"
sweep --merge "$tmp/list" "$tmp/array" >"$tmp/part.json" 2>"$tmp/merge.out" && fail "merged although a line failed"
has 'no results of line 2' "$tmp/merge.out"
sweep "$tmp/nowhere" "$tmp/x" >"$tmp/refused.out" 2>&1
[ $? = 2 ] || fail "no list, but no usage error"
has 'found no list' "$tmp/refused.out"

# one that a signal ends is told by the signal's name, with what it said last: the table's head is not why
mkdir "$tmp/fake"
cat >"$tmp/fake/trib-sim" <<'END'
#!/bin/bash
echo "# the table's head"
[ "$1" != "${1%two-hosts.conf}" ] && { echo "trib-sim: said before" >&2; kill -SEGV $$; }
[ "$1" != "${1%single-switch-4.conf}" ] && kill -ABRT $$
exit 7
END
chmod +x "$tmp/fake/trib-sim"
for p in "$TRIB_BUILD"/trib-*; do [ -e "$tmp/fake/${p##*/}" ] || ln -s "$p" "$tmp/fake/"; done
printf '%s\n' two-hosts.conf single-switch-4.conf leaf-spine-8.conf >"$tmp/list"
TRIB_BUILD=$tmp/fake sweep "$tmp/list" "$tmp/crash" >"$tmp/task.out" 2>&1
[ $? = 1 ] || fail "a sweep with crashes ended well"
has "line 1 failed: ended by SIGSEGV \(signal 11\); the last it said: trib-sim: said before$" "$tmp/task.out"
has "line 2 failed: ended by SIGABRT \(signal 6\)$" "$tmp/task.out"
has "line 3 failed: exit code 7, without a word$" "$tmp/task.out"
has "table's head" "$tmp/crash/00000.out"
has "said before" "$tmp/crash/00000.out"
