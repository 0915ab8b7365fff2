#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib sim and trib perf --schedule FILE: a ring from a file is --algo ring, the examples are right in both places, wrong files and what
# does not go together are refused by name.
# load: any
. "$(dirname "$0")/lib.sh"
dir=$conf/schedules

sim() { # sim NAME ARG...
    local name=$1
    shift
    trib sim "$@" -J "$tmp/$name.json" >"$tmp/$name.out" 2>&1 || fail "trib sim $*: $(tail -n 3 "$tmp/$name.out")"
}
figures='[.virtual.trace, .virtual.frames, (.results[] | .in_place, .size_bytes, .time_us, .predicted_us, .link_bytes, .wrong)]'

# frame by frame, on one network and on two, whatever the chunks' lengths
for f in leaf-spine-8 h100-node rail-2x4; do
    sim ring $f all_reduce -g 8 --algo ring -b 4004 -e 1M -f 128
    sim file $f --schedule ring-8 -b 4004 -e 1M -f 128
    cmp <(jq -c "$figures" "$tmp/ring.json") <(jq -c "$figures" "$tmp/file.json") || fail "$f: a ring from a file is another one"
    jq -e '[.results[] | .algo == "ring-8" and .asked == "ring-8" and .collective == "all_reduce" and .wrong == 0] | length == 4 and all' \
        "$tmp/file.json" >/dev/null || fail "$f: $(cat "$tmp/file.json")"
done
has '^# Algorithm: ring-8' "$tmp/file.out"

# beside algorithms it is one more, and for small vectors a better one; the model knows it
sim pairs leaf-spine-8 --schedule conf/schedules/allpairs-8.sched --algo ring,auto -b 4K -e 256K -f 64 -d float,int8 -o sum,max
has '^# allpairs-8 against ring, out-of-place' "$tmp/pairs.out"
jq -e '[.results[] | select(.wrong != 0)] == [] and
    ([.results[] | select(.algo == "allpairs-8" and (.in_place | not)) | (.time_us / .predicted_us - 1 | fabs) < 0.02] | length == 8 and all) and
    ([.results[] | select(.size_bytes == 4096 and .type == "float" and .op == "sum" and (.in_place | not))] |
        (map(select(.algo == "ring"))[0].time_us) > 2 * (map(select(.algo == "allpairs-8"))[0].time_us)) and
    ([.results[] | select(.asked == "auto" and .algo == "allpairs-8")] == [])' "$tmp/pairs.json" >/dev/null || fail "allpairs: $(cat "$tmp/pairs.json")"
sim bruck h100-node all_gather --schedule "$dir/bruck-8.sched" -b 64K -e 64K
sim avg leaf-spine-8 --schedule allpairs-8 -b 1000 -e 1000 -d double -o avg --error
has 'allpairs-8 +[0-9.]+ +[0-9.]+$' "$tmp/avg.out"

# what comes with Tributary is what the generator writes; it writes others, too
for f in "$dir"/*.sched; do
    n=$(basename "$f" .sched)
    "$root/scripts/make_schedule" "${n%-*}" "${n##*-}" | cmp - "$f" || fail "$f is not what scripts/make_schedule writes"
done
for a in ring allpairs bruck tree doubling; do
    for n in 2 3 4; do
        "$root/scripts/make_schedule" $a $n >"$tmp/$a-$n.sched" || fail "make_schedule $a $n"
        sim made single-switch-4 --schedule "$tmp/$a-$n.sched" -b 10000 -e 10000
        jq -e '[.results[].wrong == 0] | length == 2 and all' "$tmp/made.json" >/dev/null || fail "$a $n: $(cat "$tmp/made.json")"
    done
done

# in real time: the same bytes on the same links
trib perf single-switch-4 --schedule "$tmp/ring-4.sched" --algo ring -b 64K -e 64K -n 2 -w 0 --max-wall 4 -J "$tmp/perf.json" >"$tmp/perf.out" 2>&1 ||
    fail "trib perf: $(tail -n 3 "$tmp/perf.out")"
jq -e '.results | map(select(.algo == "ring")) as $r | map(select(.algo == "ring-4")) as $s | ($r | length) == 2 and ($s | length) == 2 and
    all(.wrong == 0) and ([range(2) | ($s[.].link_bytes / $r[.].link_bytes - 1 | fabs) < 0.02] | all)' "$tmp/perf.json" >/dev/null ||
    fail "perf: $(cat "$tmp/perf.json")"

(cat "$conf/single-switch-4.conf" && echo 'slots_per_host = 1;') >"$tmp/one.conf"
refuses() { # refuses TEXT ARG...
    local text=$1
    shift
    trib "$@" >"$tmp/r.out" 2>&1
    [ $? = 2 ] || fail "trib $*: expected exit code 2: $(cat "$tmp/r.out")"
    has "$text" "$tmp/r.out"
}
for p in sim perf; do
    refuses '^trib-.*: -g: found 4, expected the 8 ranks of .*ring-8' $p leaf-spine-8 --schedule ring-8 -g 4
    refuses '--schedule: found all_gather, expected all_reduce, of which .* is a schedule' $p leaf-spine-8 all_gather --schedule ring-8
    refuses '--algo: found schedule, expected --schedule FILE with it' $p leaf-spine-8 --algo schedule
    refuses '--policy: found it with --schedule alone' $p leaf-spine-8 --schedule ring-8 --policy ring
    refuses '-k: found it with --schedule' $p leaf-spine-8 --schedule ring-8 -k 2
    refuses '-r: found 1, expected the root 0 of' $p single-switch-4 --schedule "$tmp/tree-4.sched" -r 1
    refuses '--schedule: found 8, which is 2 ranks a host, expected at most 4' $p "$tmp/one.conf" --schedule ring-8 -b 4K -e 4K
    refuses "found no schedule file 'nowhere', expected a path such as" $p leaf-spine-8 --schedule nowhere
done
TRIB_ALGO=ring refuses 'TRIB_ALGO: found "ring", expected none with --schedule' sim leaf-spine-8 --schedule ring-8
refuses '--workload: found it with --schedule' sim rail-2x4 --workload llama3-70b --schedule ring-8
refuses '--chaos: found --schedule too' sim leaf-spine-8 --chaos 1 --schedule ring-8
sed '/^chunks/a place out' "$dir/ring-8.sched" >"$tmp/out.sched"
refuses '--place: found in, expected out' sim leaf-spine-8 --schedule "$tmp/out.sched" --place in
sim out leaf-spine-8 --schedule "$tmp/out.sched" -b 4K -e 4K
jq -e '[.results[].in_place] == [false]' "$tmp/out.json" >/dev/null || fail "place out: $(cat "$tmp/out.json")"

# wrong files, by line and reason
wrong() { # wrong SED TEXT
    sed "$1" "$dir/ring-8.sched" >"$tmp/wrong.sched"
    cmp -s "$tmp/wrong.sched" "$dir/ring-8.sched" && fail "sed '$1' changes nothing"
    refuses "^$tmp/wrong.sched:$2" sim leaf-spine-8 --schedule "$tmp/wrong.sched"
}
n=$(grep -n '^rank 5' "$dir/ring-8.sched" | cut -d: -f1)
wrong "$((n + 3))s/ after 1//" "$((n + 3)): found out:4 used while line $((n + 2)) \(step 1\) may not be done with it, expected after 1"
wrong "$((n + 2))s/in:4/in:3/" "$((n + 2)): found a sum of chunk 4 and chunk 3, expected the same chunk twice"
wrong "$((n + 28))d" "[0-9]+: found a send to rank 5, which has no receive for it, expected one"
wrong "s/^ranks 8/ranks 9/" "[0-9]+: found the end of the file after 8 ranks, expected rank 8: there are 9 ranks"
wrong "/^rank 6/,\$d" "[0-9]+: found the end of the file after 6 ranks, expected rank 6: there are 8 ranks"
wrong "s/out:7$/out:8/" "[0-9]+: found out:8, expected a chunk from 0 to 7 of out"
wrong "$((n + 2))s/in:4 out:4/in:4-5 out:4-5/" "[0-9]+: found 1 chunk sent to rank 5, which receives 2 in line $((n + 2)), expected the same count"
