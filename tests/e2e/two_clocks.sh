#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One code base, two clocks: the times of trib perf, in real time, and of trib sim, in virtual time, agree within 5 % wherever the
# fabric kept up: ring and SHARP on 2, 4 and 8 hosts, tree, halving and direct on 8, ring and hierarchical on 8 GPUs of two nodes. make
# clocks has every row of eleven fabrics, within 3 %, for an idle machine.
# Fails where a row is apart each time that its fidelity is ok; skips where this machine is too busy for anything to be ok.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

until_s=70 # no further chances after so long

# of FILE: algorithm, size, place, time, dilation and fidelity of each row
rows() {
    jq -r '.results[] | "\(.algo) \(.size_bytes) \(if .in_place then "in" else "out" end) \(.time_us) \(.dilation) \(.fidelity.ok)"' "$1"
}

# both NAME ROWS OPTION...: conf/NAME.conf, or one of this test, by both clocks; a line for each row, added to $tmp/NAME.rows
both() {
    local name=$1 n=$2 file=$1.conf
    shift 2
    [ ! -e "$tmp/$file" ] || file=$tmp/$file
    [ -s "$tmp/$name.sim" ] || trib sim "$file" "$@" -J "$tmp/$name.sim" >"$tmp/sim.out" 2>&1 ||
        fail "trib sim $name: $(tail -n 3 "$tmp/sim.out")"
    trib perf "$file" "$@" --max-wall 5 -J "$tmp/perf.json" >"$tmp/perf.out" 2>&1 || fail "trib perf $name: $(tail -n 3 "$tmp/perf.out")"
    times_ok "$tmp/perf.json"
    paste -d ' ' <(rows "$tmp/$name.sim") <(rows "$tmp/perf.json") | awk -v name="$name" '
        $1 != $7 || $2 != $8 || $3 != $9 { print "rows differ: " $0 > "/dev/stderr"; exit 1 }
        { printf "%-16s %-6s %9d %-3s %10.2f %10.2f %7.3f %8d  %s\n", name, $1, $2, $3, $4, $10, $10 / $4, $11, $12 == "true" ? "ok" : "lag" }' \
        >"$tmp/rows" || fail "$name: the clocks ran different rows"
    [ "$(wc -l <"$tmp/rows")" = "$n" ] || fail "$name: expected $n rows: $(cat "$tmp/rows")"
    tee -a "$tmp/$name.rows" <"$tmp/rows"
}

# Prints a verdict on all runs of NAME for each algorithm and size: agrees (in a run that kept up), apart (in all that did), or lagged (none did).
verdicts() {
    awk '{ k = $2 " " $3; seen[k]; if ($NF == "ok") { ok[k]++; if ($7 >= 0.95 && $7 <= 1.05) good[k]++ } }
        END { for (k in seen) print (good[k] ? "agrees" : ok[k] ? "apart" : "lagged"), k }' "$tmp/$1.rows"
}

# Enough said of NAME: nothing is apart, and of each algorithm two sizes or more agree.
settled() {
    verdicts "$1" | awk '{ algo[$2]; n[$2] += $1 == "agrees"; bad += $1 == "apart" } END { for (a in algo) bad += n[a] < 2; exit bad > 0 }'
}

# clocks NAME ROWS OPTION...: as both(), with a second chance where the machine did not keep up and a third; what is not its fault is
# there again
clocks() {
    local chance
    both "$@"
    for chance in second third; do
        ! settled "$1" && [ $SECONDS -lt $until_s ] || break
        echo "$chance chance for $1: this machine was too busy, or the clocks disagree"
        both "$@"
    done
    if verdicts "$1" | grep apart >"$tmp/apart.out"; then
        fail "$1: real and virtual time are more than 5 % apart: $(cat "$tmp/apart.out")"
    fi
    settled "$1" || busy="$busy $1"
}

busy=
printf '%-16s %-6s %9s %-3s %10s %10s %7s %8s  %s\n' conf algo size in? virtual real ratio dilation fidelity
for c in two-hosts single-switch-4 leaf-spine-8; do
    clocks $c 12 --algo ring,sharp -b 64K -e 4M -f 8 -n 3
done
cp "$conf/leaf-spine-8.conf" "$tmp/trees.conf"
clocks trees 12 --algo tree,halving,direct -b 128K -e 1M -f 8 -n 3
clocks rail-2x4 8 --algo ring,hier -b 1M -e 4M -f 4 -n 2
[ -z "$busy" ] || skip "this machine did not keep up with$busy"
