#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What counters, the hook of captures (off) and the hook of faults (off) cost a frame: instructions of the engine (bench_switch, under
# callgrind), beside those of a copy of the sources from which their lines are taken out. With --link it builds that copy and measures
# nothing (tests/e2e/benches.sh).
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
build=$(cd "${BUILD:-build}" && pwd)
. tests/bench/forwarders.sh
name="counters, capture off, faults off"
[ "${1:-}" = --link ] || command -v valgrind >/dev/null || { skipped "$name" "valgrind is not installed (scripts/setup.sh bench)"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# without FILE SED-COMMAND: each must change something, or it measures nothing
without() {
    sed -i.was "$2" "$dir/src/$1"
    ! cmp -s "$dir/src/$1.was" "$dir/src/$1" || { echo "bench_hooks: nothing to take out of $1 by $2" >&2; exit 1; }
}

# Set-up is the same in a run of one length and of twice that: the difference is frames.
instructions() { # PROGRAM
    local n a=()
    for n in 5120 10240; do
        a+=("$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$1" "$dir/conf" $n 2>&1 | awk '/Collected/ { print $4 }')")
    done
    awk -v a="${a[0]}" -v b="${a[1]}" 'BEGIN { printf "%.1f\n", (b - a) / (20 * 5120) }'
}

switch_conf 8 >"$dir/conf"
mkdir "$dir/src"
# The whole tree: which rooms a room uses is the Makefile's to say.
git ls-files --cached --others --exclude-standard | while read -r f; do [ ! -f "$f" ] || echo "$f"; done | tar -cf - -T - | tar -xf - -C "$dir/src" &&
    cp -a "$build" "$dir/src/build" || exit 1
# What is only counted for them falls away by itself.
without switch/sw.c '/^ *\(s->nd\.\|nd->\)cnt\[.*\]\.[a-z_]*\(++\| += \)/d'
without switch/queue/egress.c '/^ *e->st\.[a-z_]*\(++\| += \)/d'
without switch/queue/egress.c '/^ *note_peaks(.*);/d'
without switch/queue/egress.c 's/e->faults\>/false/'
without switch/net/net.c 's/n->tap != NULL/false/'
make -s -C "$dir/src" BUILD=build WARN= build/tests/bench/bench_switch >"$dir/log" 2>&1 || { tail -5 "$dir/log" >&2; exit 1; }
[ "${1:-}" != --link ] || exit 0
row "$name" "$(instructions "$build/tests/bench/bench_switch")" instr "the engine without them" \
    "$(instructions "$dir/src/build/tests/bench/bench_switch")" 0.98 time
