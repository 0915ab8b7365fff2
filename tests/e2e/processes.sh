#!/usr/bin/env bash
# A trib-switch process per switch, linked by memif, gives the same results as all in one.
. "$(dirname "$0")/lib.sh"

trib up "$conf/leaf-spine-8-procs.conf" --dilation 2000 >"$tmp/up.out" || fail "no fabric"
has '4 switch process' "$tmp/up.out"
perf_ok procs -b 1000 -e 4M -f 16 -n 2 -w 0
perf_ok types -d half,int64 -o sum,max -b 100K -e 100K -n 1 -w 0
trib status >"$tmp/status.out"
has_not 'dead|drop_|overflow|bad_frames|no_buffer' "$tmp/status.out"
trib down >/dev/null || fail "down"
