#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A trib-switch process per switch, linked by memif, gives the same results as all in one.
# load: any
. "$(dirname "$0")/lib.sh"

sed 's/spines *= *2/spines = 4/' "$conf/leaf-spine-8-procs.conf" >"$tmp/procs.conf"
trib up "$tmp/procs.conf" --dilation 2000 >"$tmp/up.out" || fail "no fabric"
has '6 switch process' "$tmp/up.out"
perf_ok procs -b 1000 -e 4M -f 16 -n 2 -w 0
perf_ok types -d half,int64 -o sum,max -b 100K -e 100K -n 1 -w 0
trib status >"$tmp/status.out"
has_not 'dead|drop_|overflow|bad_frames|no_buffer' "$tmp/status.out"
trib down >/dev/null || fail "down"

# Nodes spread over processes by hand: the same, and one that dies is named.
"$TRIB_BUILD/trib-switch" "$conf/leaf-spine-8.conf" --nodes h0,h1,h2,h3,leaf0,spine0 >"$tmp/left.out" 2>&1 &
left=$!
"$TRIB_BUILD/trib-switch" "$conf/leaf-spine-8.conf" --nodes h4,h5,h6,h7,leaf1,spine1 >"$tmp/right.out" 2>&1 &
right=$!
until_true 10 grep -q ready "$tmp/left.out" || fail "$(cat "$tmp/left.out")"
until_true 10 grep -q ready "$tmp/right.out" || fail "$(cat "$tmp/right.out")"
perf_ok byhand -b 64K -e 64K -n 2
(sleep 2 && kill -9 $right) &
trib perf -b 1M -e 1M -n 1000000 --max-wall 3600 >"$tmp/died.out" 2>&1 && fail "exit code 0 although a switch was killed"
has "trib-switch h4 \(pid $right\) has died" "$tmp/died.out"
kill $left
wait $left
