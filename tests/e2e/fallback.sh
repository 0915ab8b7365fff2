#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job goes on exactly, and says why: by the hosts when the aggregation nodes refuse its group, and by the remaining tree when one dies under it.
# Traffic of a switch process that dies takes another way, if there is one.
# load: any
. "$(dirname "$0")/lib.sh"

start_long() { # NAME CONF ARG...: a job of its own in the background, $job its launcher
    local out=$tmp/$1.out name
    name=$(basename "$2" .conf)
    TRIB_RUN=$run/$name "$TRIB_BUILD/trib-perf" "$2" -b 1M -e 1M -w 0 --wide --max-wall 3600 "${@:3}" >"$out" 2>&1 &
    job=$!
}
frames() { [ "$(total rx_frames 2>/dev/null)" -gt "$1" ]; }

# Refused: each tree takes a group of every leaf, and the first job has them all.
sed -e 's/leaf-spine-8/quota/' -e 's/groups = 64/groups = 2/' "$conf/leaf-spine-8.conf" >"$tmp/quota.conf"
trib up "$tmp/quota.conf" --dilation 2000 >/dev/null || fail "no fabric with a quota"
start_long long "$tmp/quota.conf" -n 1000000 --algo sharp --policy sharp
until_true 30 frames 5000 || fail "the long job did not get under way"
perf_ok second --algo sharp -b 64K -e 256K -n 2
has 'fell back, out-of-place, from operation 1 of 2 on: JOIN refused by leaf[01]: over quota: groups' "$tmp/second.out"
has 'fell back, in-place, from operation 1 of 2 on: JOIN refused by leaf[01]: over quota: groups' "$tmp/second.out"
has '"fell_back": "JOIN refused by leaf[01]: over quota' "$tmp/second.json"
trib perf --algo sharp -b 4K -e 4K -n 2 --policy sharp >"$tmp/refused.out" 2>&1 && fail "exit code 0 although there was no way"
has 'over quota: groups' "$tmp/refused.out"
kill -0 $job || fail "the refused jobs ended the other"
kill -INT $job
wait $job
[ $? = 130 ] || fail "an interrupted run must end with 130"
perf_ok small --algo sharp -b 64K -e 64K -n 2 --window 1
has 'fell back, .*less than one message takes' "$tmp/small.out"
perf_ok after --algo sharp -b 64K -e 64K -n 2
has_not 'fell back' "$tmp/after.out"
trib down >/dev/null || fail "down"

# spine0, the root of one tree, dies once within the operations out of place, once in place (about 5800 frames each).
for case in "out-of-place 40 20000" "in-place 30 195000"; do
    read -r place n at <<<"$case"
    name=leaf-spine-8-procs
    trib up "$conf/$name.conf" --dilation 2000 >/dev/null || fail "no fabric"
    start_long "$place" "$conf/$name.conf" --algo sharp -n "$n" -J "$tmp/$place.json"
    until_true 60 frames "$at" || fail "the run did not get under way"
    kill -9 "$(pids_in "$run/$name/proc/spine0.pid")"
    wait $job || fail "$place: ended with $? although there is another spine"
    has 'trib-switch spine0 \(pid [0-9]+, nodes spine0\) has died: killed by signal 9 \(Killed\); the job continues' "$tmp/$place.out"
    # one operation is cut; those behind it run by the tree of spine1
    has "fell back, $place, $((n - 1)) of $n operations wholly by sharp: .*spine0.*; 1 of 2 trees from operation" "$tmp/$place.out"
    has 'Out of bounds values : 0 OK' "$tmp/$place.out"
    has '"fell_back": ".*spine0' "$tmp/$place.json"
    has_not '"wrong": [^0]' "$tmp/$place.json"
    trib down >/dev/null || fail "down"
done

# The same under hier_sharp, whose rails have their root in spine0: what is under way starts over by the ring. (A plane or a leaf that
# dies takes hosts' links with it: the launcher ends the job by its name, kill_switch.sh.)
name=two-units
trib up "$root/tests/e2e/confs/$name.conf" --dilation 2000 >/dev/null || fail "no fabric of two units"
start_long "$name" "$root/tests/e2e/confs/$name.conf" --policy hier_sharp,ring -n 40 -J "$tmp/$name.json"
until_true 60 frames 20000 || fail "the run on two units did not get under way"
kill -9 "$(pids_in "$run/$name/proc/spine0.pid")"
wait $job || fail "$name: ended with $? although there is another spine"
has 'trib-switch spine0 \(pid [0-9]+, nodes spine0\) has died: killed by signal 9 \(Killed\); the job continues' "$tmp/$name.out"
has "fell back, out-of-place, from operation [0-9]+ of 40 on: .*spine0 .*starts over" "$tmp/$name.out"
has_not "fell back, out-of-place, from operation 1 of" "$tmp/$name.out"
has 'Out of bounds values : 0 OK' "$tmp/$name.out"
has_not '"wrong": [^0]' "$tmp/$name.json"
trib down >/dev/null || fail "down"
