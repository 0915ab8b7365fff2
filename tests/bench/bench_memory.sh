#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory: of a switch with 64 ports while it carries an all-reduce of 64 hosts, of a rank besides its buffers, and what switch and ranks
# have grown by over a soak: a long job by each algorithm, then short ones, each with groups of its own. BENCH_SOAK=SECONDS says how long (30,
# quick 6; 600 for the ten minutes that count). By the proportional share of pages (PSS). Prints JSON objects, one a line.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
own_fabric
soak=${BENCH_SOAK:-30} ranks=64 most=256
[ -z "${BENCH_QUICK:-}" ] || soak=${BENCH_SOAK:-6} ranks=16 most=null # not everything is in use after seconds, so growth says nothing yet

switch() { awk 'FNR == 1' "$TRIB_RUN"/proc/*.pid; }
pss() { awk '/^Pss:/ { n += $2 } END { print n + 0 }' "/proc/$1/smaps_rollup" 2>/dev/null; } # KiB
ranks() { ps -eo pid=,args= | awk -v r="$dir" '$2 ~ /trib-perf/ || $2 == "/proc/self/exe" { print $1 }' | while read -r p; do
    grep -qszx "TRIB_RUN=$TRIB_RUN" "/proc/$p/environ" && grep -qszE 'TRIB_HOST=.+' "/proc/$p/environ" && echo "$p"
done; }
perf() { # perf CONF OPTION...: in the background
    scripts/trib perf "$@" -c 0 >"$dir/perf.out" 2>&1 &
    job=$!
}
fail() {
    echo "bench_memory: $*" >&2
    tail -5 "$dir/perf.out" >&2
    exit 1
}

# ---- 64 ports ----
scripts/trib up tests/bench/memory.conf >/dev/null || exit 1
perf tests/bench/memory.conf -g $ranks -b 1M -e 1M -n 2 --algo sharp,ring
wait $job || fail "the job failed"
job=
figure "switch of 64 ports, its NICs, after $ranks ranks' jobs" "$(awk '/VmHWM/ { print $2 / 1024 }' "/proc/$(switch)/status")" MiB 512
scripts/trib down >/dev/null

# ---- soak: a job by each algorithm for a third of the time, then job after job; a job of everything before, so that all is in use ----
scripts/trib up conf/leaf-spine-8.conf --dilation 2000 >/dev/null || exit 1
perf conf/leaf-spine-8.conf -b 1M -e 1M -n 2
wait $job || fail "the first job failed"
begin=$SECONDS s0=$(pss "$(switch)")
: >"$dir/most" >"$dir/grown"
for algo in ring sharp; do
    perf conf/leaf-spine-8.conf -b 1M -e 1M -n 1000000 --max-wall $((5 * soak / 6 + 5)) --algo $algo
    sleep $((soak / 15 + 1))
    of=$(ranks) now=
    [ "$(wc -w <<<"$of")" = 8 ] || fail "found ranks '$of', expected eight"
    for p in $of; do echo "$p $(pss "$p")"; done >"$dir/first"
    while kill -0 $job 2>/dev/null; do
        for p in $of; do echo "$p $(pss "$p")"; done | awk 'NF == 2 && $2 > 0' >"$dir/now"
        [ "$(wc -l <"$dir/now")" = 8 ] && cp "$dir/now" "$dir/last"
        sleep 0.2
    done
    wait $job || fail "the long job failed"
    awk '{ print $2 }' "$dir/last" >>"$dir/most"
    awk 'NR == FNR { a[$1] = $2; next } { print $2 - a[$1] }' "$dir/first" "$dir/last" >>"$dir/grown"
done
n=0
while [ $((SECONDS - begin)) -lt "$soak" ]; do
    perf conf/leaf-spine-8.conf -b 64K -e 64K -n 2
    wait $job || fail "a short job failed"
    n=$((n + 1))
done
job=
figure "rank, besides its buffers of 2 MiB" "$(sort -n "$dir/most" | awk 'END { print $1 / 1024 - 2 }')" MiB 256
figure "rank that grew most, in $((soak / 3)) s" "$(sort -n "$dir/grown" | tail -1)" KiB $most
figure "switch, growth in $soak s and $n further jobs" "$(($(pss "$(switch)") - s0))" KiB $most
