#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs of make static need glibc alone, and work: a fabric, collectives with nothing preloaded, and the GPU's driver found at run
# time (the tests' own).
# load: any
. "$(dirname "$0")/lib.sh"

fake=$TRIB_BUILD/tests/fake sim=$TRIB_BUILD/static/trib-sim
export TRIB_BUILD=$TRIB_BUILD/static
for p in plan model switch perf sim status; do
    ldd "$TRIB_BUILD/trib-$p" >"$tmp/ldd.out" || fail "no trib-$p"
    others=$(awk '{ print $1 }' "$tmp/ldd.out" | grep -vE '^(linux-vdso|libc|libm|libdl|libpthread|/lib.*/ld-linux)' || true)
    [ -z "$others" ] || fail "trib-$p needs $others"
done
trib up "$conf/two-hosts.conf" >"$tmp/up.out" 2>&1 || fail "trib up"
trib status --links >"$tmp/links.out" 2>&1 || fail "trib status --links: $(cat "$tmp/links.out")"
has 'h0 +h1 +up' "$tmp/links.out"
trib down >"$tmp/down.out" 2>&1
perf_ok static "$conf/single-switch-4.conf" -b 64K -e 64K -n 2 -w 0 --max-wall 5
"$sim" "$conf/leaf-spine-8.conf" -b 64K -e 64K -n 1 >"$tmp/sim.out" 2>&1 || fail "trib-sim"
if [ -f "$fake/libcuda.so.1" ]; then
    LD_LIBRARY_PATH=$fake perf_ok gpu "$conf/single-switch-4.conf" --mem cuda -b 64K -e 64K -n 2 -w 0 --max-wall 5
    has 'Memory: fake GPU' "$tmp/gpu.out"
fi
