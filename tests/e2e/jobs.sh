#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib sim --jobs: several jobs on one fabric, each right, beside running alone; the same to the byte each time; what switches refuse;
# a job that dies; and what is refused.
# clock: virtual
. "$(dirname "$0")/lib.sh"

several() { trib sim "$@" 2>"$tmp/err"; } # several CONF --jobs FILE ...

# eight jobs of different algorithms: right, slower than alone, and three runs alike
for i in 1 2 3; do
    several leaf-spine-8 --jobs eight -J "$tmp/$i.json" --seed 7 >"$tmp/$i.out" || fail "eight jobs: $(cat "$tmp/err")"
done
cmp "$tmp/1.json" "$tmp/2.json" && cmp "$tmp/1.json" "$tmp/3.json" || fail "runs differ"
cmp "$tmp/1.out" "$tmp/2.out" && cmp "$tmp/1.out" "$tmp/3.out" || fail "runs print different tables"
jq -e '(.jobs | length) == 8 and ([.jobs[] | .wrong == 0 and .results_checked > 0 and .end == "done" and .slowdown >= 1] | all) and
    ([.jobs[].slowdown | select(. > 1.5)] | length) >= 4' "$tmp/1.json" >/dev/null || fail "eight: $(cat "$tmp/1.json")"
# Jain's index, computed once more; times and their ratio
jq -e '([.jobs[] | 1 / .slowdown] | (add * add) / (length * (map(. * .) | add))) as $jain | (.fairness - $jain | fabs) < 1e-6 and
    ([.jobs[] | .time_us / .alone_us / .slowdown - 1 | fabs < 1e-6] | all)' "$tmp/1.json" >/dev/null || fail "index: $(cat "$tmp/1.json")"
# every rank's result of every iteration was compared, together and alone; noise goes on as long as another job
jq -e '([.jobs[] | .results_checked == 2 * .ranks * .iterations * (.operations | length)] | all) and
    ([.jobs[] | select(.name != "noise") | .ended_us] | max) as $last | .jobs[7] | .iterations > 4 and .ended_us >= $last' \
    "$tmp/1.json" >/dev/null || fail "checks: $(cat "$tmp/1.json")"
has "^# Jain's fairness index of 8 jobs" "$tmp/1.out"

# alone a job takes what its row takes
several leaf-spine-8 --jobs two -J "$tmp/two.json" >"$tmp/two.out" || fail "two jobs: $(cat "$tmp/err")"
trib sim leaf-spine-8 all_reduce -g 8 -b 1M -e 1M --algo sharp --place out -n 8 -J "$tmp/row.json" >/dev/null 2>&1 || fail "the row"
jq -e --slurpfile r "$tmp/row.json" '.jobs[1].alone_us / $r[0].results[0].time_us - 1 | fabs < 0.01' "$tmp/two.json" >/dev/null ||
    fail "alone: $(jq '.jobs[1]' "$tmp/two.json"), row: $(jq '.results[0].time_us' "$tmp/row.json")"

# more jobs than groups: refused by name, run by the fallback; without one the job ends; after a death its groups serve another job
sed 's/^name .*/name = "tight";/; s/^reduce .*/reduce = { groups = 2; slots = 2048; window = 256; };/' "$conf/leaf-spine-8.conf" >"$tmp/tight.conf"
cat >"$tmp/quota.conf" <<'CONF'
jobs = (
    { name = "dies";  hosts = "h0:h6:2"; algorithm = "sharp"; size = "256KiB"; repeat = 20; trees = [ 0 ]; die_at = "60us"; },
    { name = "lives"; hosts = "h1:h7:2"; algorithm = "sharp"; size = "256KiB"; repeat = 20; trees = [ 0 ]; },
    { name = "falls"; hosts = "all"; algorithm = "sharp"; size = "256KiB"; repeat = 4; trees = [ 0 ]; },
    { name = "ends";  hosts = "all"; algorithm = "sharp"; size = "64KiB"; trees = [ 0 ]; policy = [ "sharp" ]; start = "10us"; },
    { name = "after"; hosts = "h0:h5"; algorithm = "sharp"; size = "256KiB"; repeat = 4; trees = [ 0 ]; start = "100us"; }
);
CONF
several "$tmp/tight.conf" --jobs "$tmp/quota.conf" -J "$tmp/q.json" --counters --links leaf0 --trace "$tmp/q.pcapng" --wide >"$tmp/q.out"
[ $? = 1 ] || fail "a job that was refused without a fallback: expected exit code 1"
has 'falls: by ring: JOIN refused by leaf[01]: over quota: groups: leaf[01] has 2 groups, at most 2' "$tmp/q.out"
has 'ends: refused: rank [0-7]: JOIN refused by leaf[01]: over quota: groups' "$tmp/q.out"
has '^# dies died at 60\.000 us .* its 3 groups were gone from the switches [0-9.]+ us later' "$tmp/q.out"
has '^# Links during all jobs' "$tmp/q.out"
jq -e '.jobs | map({key: .name, value: .}) | from_entries |
    .dies.end == "died" and .dies.released_us - .dies.died_us < 1e6 and .dies.group.groups_at_switches == 3 and .dies.iterations > 0 and
    .falls.operations[0].ran_by == "ring" and .falls.operations[0].alone_ran_by == "sharp" and .falls.group.groups_at_switches == 0 and
    .ends.end == "refused" and .ends.slowdown == null and
    .after.operations[0].ran_by == "sharp" and .after.fell_back == null and .after.group.groups_at_switches == 3 and
    ([.[] | .wrong] | add) == 0' "$tmp/q.json" >/dev/null || fail "quota: $(cat "$tmp/q.json")"
jq -e '.links | length > 0' "$tmp/q.json" >/dev/null || fail "no links"
[ -s "$tmp/q.pcapng" ] || fail "no trace"

# sixteen jobs on buffers for four: idle groups give back, all go through the switches, and each says what window it had
python3 -c 'print("jobs = (", ",".join("{ name = \"j%d\"; hosts = \"all\"; algorithm = \"sharp\"; size = \"64KiB\"; repeat = 3; }" % i for i in range(16)), ");")' >"$tmp/many.conf"
several leaf-spine-8 --jobs "$tmp/many.conf" --frames 8000 -J "$tmp/many.json" --wide >"$tmp/many.out" || fail "16 jobs: $(cat "$tmp/err" "$tmp/many.out")"
jq -e '[.jobs[] | .wrong == 0 and .operations[0].ran_by == "sharp" and .group.trees == [0, 1] and .group.window == 27] | all' "$tmp/many.json" >/dev/null ||
    fail "16 jobs: $(jq -c '.jobs[] | [.name, .operations[0].ran_by, .wrong, .group]' "$tmp/many.json")"
has '^ +j0 +8 .* sharp +27/122 ' "$tmp/many.out"
has 'j0: window 27 of 122 on 2 of 2 trees because leaf[01] needs the buffers for other groups' "$tmp/many.out"

# a rank that a fault plan kills ends its own job alone, and links that lose frames change no result
cat >"$tmp/faults.conf" <<'CONF'
faults = ( { link = "leaf0-spine0"; loss = "1%"; }, { at = "30us"; rank = 1; die = true; } );
CONF
several leaf-spine-8 --jobs two --faults "$tmp/faults.conf" -J "$tmp/f.json" >"$tmp/f.out" || fail "faults: $(cat "$tmp/err" "$tmp/f.out")"
jq -e '.jobs[0].end == "died" and .jobs[0].died_us == 30 and .jobs[1].end == "done" and .jobs[1].wrong == 0 and .jobs[1].iterations == 8' \
    "$tmp/f.json" >/dev/null || fail "faults: $(cat "$tmp/f.json")"

# aggregation protocols: exact, or within their bound; what one that dies held at switches is back
several leaf-spine-8 --jobs protocols -J "$tmp/p.json" >"$tmp/p.out" || fail "protocols: $(cat "$tmp/err" "$tmp/p.out")"
jq -e '.jobs | map({key: .name, value: .}) | from_entries |
    .float.end == "died" and .float.iterations > 0 and .float.group.groups_at_switches > 0 and .float.released_us - .float.died_us < 1e6 and
    .float.operations[0].bound > 0 and .switchml.operations[0].bound == null and
    .switchml.end == "done" and .ps.end == "done" and .atp.end == "done" and .sharp.end == "done" and .ring.end == "done" and
    ([.[] | .wrong] | add) == 0 and ([.[] | .operations[0] | .ran_by == .asked] | all)' "$tmp/p.json" >/dev/null || fail "protocols: $(cat "$tmp/p.json")"

# NVSwitches, and lengths instead of data: the same times
cat >"$tmp/nv.conf" <<'CONF'
jobs = ( { name = "nvls"; hosts = "all"; algorithm = "nvls"; size = "1MiB"; repeat = 4; die_at = "25us"; },
         { name = "pull"; hosts = "all"; algorithm = "nvls"; collective = "all_gather"; size = "1MiB"; repeat = 4; },
         { name = "ring"; hosts = "all"; algorithm = "ring"; size = "1MiB"; repeat = 2; } );
CONF
several h100-node --jobs "$tmp/nv.conf" -J "$tmp/nv.json" >"$tmp/nv.out" || fail "nvls: $(cat "$tmp/err" "$tmp/nv.out")"
jq -e '.jobs[0].released_us - .jobs[0].died_us < 1e6 and .jobs[0].group.groups_at_switches >= 4 and ([.jobs[].wrong] | add) == 0' \
    "$tmp/nv.json" >/dev/null || fail "nvls: $(cat "$tmp/nv.json")"
several h100-node --jobs "$tmp/nv.conf" --payload none -J "$tmp/nvl.json" >/dev/null || fail "nvls, lengths: $(cat "$tmp/err")"
jq -e --slurpfile l "$tmp/nvl.json" '[.jobs[].time_us] == [$l[0].jobs[].time_us] and $l[0].jobs[0].wrong == null' "$tmp/nv.json" >/dev/null ||
    fail "lengths: $(jq '[.jobs[].time_us]' "$tmp/nv.json" "$tmp/nvl.json")"

refuses() { # refuses TEXT ARG...
    local text=$1
    shift
    trib sim "$@" >"$tmp/r.out" 2>&1
    [ $? = 2 ] || fail "trib sim $*: expected exit code 2: $(cat "$tmp/r.out")"
    has "$text" "$tmp/r.out"
}
refuses 'jobs: found it with --algo, expected' leaf-spine-8 --jobs two --algo ring
refuses 'jobs: found it with --background-flow' leaf-spine-8 --jobs two --background-flow h0:h1
refuses 'jobs: found it with --workload' leaf-spine-8 --jobs two --workload llama3-70b
refuses 'jobs: found it with all_gather' leaf-spine-8 all_gather --jobs two
refuses 'found neither --trace nor --counters' leaf-spine-8 --jobs two --links leaf0
refuses 'found .*jobs' --chaos 1 --jobs two
refuses 'no file of jobs' leaf-spine-8 --jobs "$tmp/none.conf"
refuses 'rank: found 8, expected one of 8' leaf-spine-8 --jobs two --faults <(echo 'faults = ( { rank = 8; die = true; } );')
refuses 'payload: found none, expected data: a protocol of switchml' leaf-spine-8 --jobs protocols --payload none
refuses 'two.conf:[0-9]+: hosts: found "h6", expected' two-hosts --jobs two
