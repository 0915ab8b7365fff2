#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two jobs on one fabric at once, each with its own group, are both exact, without drops; one that finds no room in the switches is
# refused by name while the other goes on.
# tier: core
. "$(dirname "$0")/lib.sh"

trib up "$conf/leaf-spine-8.conf" --dilation 2000 >/dev/null || fail "no fabric"
perf_ok a -b 4K -e 1M -f 16 -n 5 --max-wall 5 &
one=$!
perf_ok b -b 8K -e 2M -f 16 -n 5 -d int32 -o max --max-wall 5 &
two=$!
wait $one || fail "first job"
wait $two || fail "second job"
no_repeats
trib down >/dev/null

sed -e 's/leaf-spine-8/quota/' -e 's/groups = 64/groups = 2/' "$conf/leaf-spine-8.conf" >"$tmp/quota.conf"
# Each tree takes a group of every leaf.
trib up "$tmp/quota.conf" --dilation 2000 >/dev/null || fail "no fabric with a quota"
TRIB_RUN=$run/quota "$TRIB_BUILD/trib-perf" "$tmp/quota.conf" --algo sharp -b 1M -e 1M -n 1000000 -w 0 --max-wall 3600 >"$tmp/long.out" 2>&1 &
long=$!
busy() { [ "$(total rx_frames)" -gt 5000 ]; }
until_true 30 busy || fail "the long job did not get under way"
trib perf --algo sharp -b 4K -e 4K -n 2 --policy sharp >"$tmp/refused.out" 2>&1 && fail "a second group was let in over the quota"
has 'over quota: groups' "$tmp/refused.out"
has 'leaf[01]' "$tmp/refused.out"
trib perf --algo ring -b 4K -e 4K -n 2 >"$tmp/ring.out" 2>&1 || fail "the ring needs no group"
kill -0 $long || fail "the refused job ended the other"
kill -INT $long
wait $long
[ $? = 130 ] || fail "an interrupted run must end with 130"
has 'interrupted' "$tmp/long.out"
perf_ok after --algo sharp -b 4K -e 4K -n 2
