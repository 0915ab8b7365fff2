#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One code base, two clocks: every row of trib perf, in real time, beside the same row of trib sim, in virtual time. A row whose fidelity is
# ok is within 3 %, whatever the algorithm and the fabric. Needs an idle machine and about an hour; CONFS, COLLS, SIZES and MAX_WALL choose
# less, BUSY=1 adds a process that keeps a core busy. Prints a line a row and a verdict; ends with code 1 if a row is apart.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TRIB_BUILD=$(cd "${BUILD:-$root/build}" && pwd) || exit 1
export TRIB_BUILD
tmp=$(mktemp -d /tmp/clocks.XXXXXX)
export XDG_RUNTIME_DIR=$tmp
hog=
finish() {
    trap - EXIT
    [ -z "$hog" ] || kill "$hog"
    rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

confs=${CONFS:-"$root/conf/single-switch-4.conf $root/conf/leaf-spine-8.conf $root/conf/rail-2x4.conf $(echo "$root"/tests/clocks/*.conf)"}
some=$root/tests/clocks/uneven.conf # every collective there, the all-reduce everywhere
others="all_gather reduce_scatter broadcast reduce gather scatter alltoall sendrecv barrier"
read -ra sizes <<<"${SIZES:--b 4K -e 4M -f 32}"
if [ "${BUSY:-0}" = 1 ]; then
    while :; do :; done &
    hog=$!
fi

rows() {
    jq -r '.results[] | "\(.algo) \(.size_bytes) \(if .in_place then "in" else "out" end) \(.time_us) \(.dilation) \(.fidelity.ok)"' "$1"
}

# both CONF COLLECTIVE
both() {
    "$root/scripts/trib" sim "$1" "$2" --algo all "${sizes[@]}" -n 3 -J "$tmp/sim.json" >"$tmp/out" 2>&1 &&
        "$root/scripts/trib" perf "$1" "$2" --algo all "${sizes[@]}" -n 3 --max-wall "${MAX_WALL:-20}" -J "$tmp/perf.json" >"$tmp/out" 2>&1 || {
        echo "$1 $2: $(tail -n 1 "$tmp/out")" >&2
        return 1
    }
    paste -d ' ' <(rows "$tmp/sim.json") <(rows "$tmp/perf.json") | awk -v conf="$(basename "$1" .conf)" -v coll="$2" '
        $1 != $7 || $2 != $8 || $3 != $9 { print "rows differ: " $0 > "/dev/stderr"; exit 1 }
        { printf "%-16s %-14s %-10s %9d %-3s %10.2f %10.2f %7.3f %8d  %s\n", conf, coll, $1, $2, $3, $4, $10, $10 / $4, $11,
            $12 == "true" ? "ok" : "lag" }'
}

printf '%-16s %-14s %-10s %9s %-3s %10s %10s %7s %8s  %s\n' conf collective algo size in? virtual real ratio dilation fidelity
failed=0
for c in $confs; do
    colls=${COLLS:-all_reduce}
    [ "$c" != "$some" ] || colls=${COLLS:-"all_reduce $others"}
    for k in $colls; do
        both "$c" "$k" | tee -a "$tmp/rows" || failed=1
        [ "${PIPESTATUS[0]}" = 0 ] || failed=1
    done
done
awk '{ n++; ok += $NF == "ok"; far = $8 > 1.03 || $8 < 0.97; off = $8 > 1 ? $8 - 1 : 1 - $8 }
    $NF == "ok" { worst = off > worst ? off : worst; apart += far }
    $NF != "ok" { lag_far += far }
    END { printf "# %d rows, %d ok (%.0f %%), of which %d are more than 3 %% apart (most: %.1f %%); %d of the rows that lag are\n",
        n, ok, 100 * ok / n, apart, 100 * worst, lag_far; exit apart > 0 }' "$tmp/rows" || failed=1
exit $failed
