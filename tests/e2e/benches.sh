#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What benchmarks build beside their programs (make bench-programs): the engine without its hooks, from a copy of the sources. A benchmark
# that nobody builds between releases fails when it is wanted.
# clock: virtual
. "$(dirname "$0")/lib.sh"
cd "$root" && git rev-parse --git-dir >/dev/null 2>&1 || skip "not a checkout: the sources to copy are those that git lists"
TMPDIR=$tmp BUILD=$TRIB_BUILD tests/bench/bench_hooks.sh --link >"$tmp/hooks.out" 2>&1 || fail "bench_hooks.sh --link: $(tail -n 5 "$tmp/hooks.out")"
for b in tests/bench/bench_*.c; do
    b=$TRIB_BUILD/${b%.c}
    [ -x "$b" ] || fail "found no $b, expected what make bench-programs links"
done
