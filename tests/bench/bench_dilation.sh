#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What `dilation = auto` chooses for a row, of the smallest factor at which the row holds fidelity: on the machine as it is, and with
# one of its cores busy. Each choice is that of a job of this row alone, which begins from a guess; the middle of four. Fixed factors from
# 0.46 to 2.2 times the first choice are tried by turns with those jobs, since what a machine of many guests needs changes by the minute.
# A factor holds by the rule that auto follows when two thirds of its runs do by their lateness, and their median time is at most 2 %
# more than it would be without the machine's own work. That time is looked for at 8 times the first choice, where little of it is left: a
# line through the times there and at 2.2 times says how much. The smallest that holds is the one below which none does but by chance: from
# it on, more than half of those above hold, too. A choice may be beyond it either way: the ratio is that of the lower one to the higher.
# Prints JSON objects, one a line.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
own_fabric
conf=conf/leaf-spine-8.conf

perf() { # perf ALGO SIZE ARG...: its JSON in $dir/out.json
    scripts/trib perf $conf --algo "$1" -b "$2" -e "$2" -c 0 --max-wall 5 -J "$dir/out.json" "${@:3}" >"$dir/out" 2>&1 ||
        { tail -5 "$dir/out" >&2; exit 1; }
}
auto() { # auto ALGO SIZE: the factor chosen
    perf "$1" "$2" -n 5
    jq '.results[0].dilation' "$dir/out.json"
}
fixed() { # fixed ALGO SIZE FACTOR: "FACTOR 1|0 TIME" of two runs
    scripts/trib up $conf --dilation "$3" >"$dir/out" 2>&1 || { tail -5 "$dir/out" >&2; exit 1; }
    perf "$1" "$2" -n 5
    jq -r --arg d "$3" '.results[] | "\($d) \(if .fidelity.ok then 1 else 0 end) \(.time_us)"' "$dir/out.json"
    scripts/trib down >/dev/null
}
# smallest: of lines "FACTOR 1|0 TIME" the least factor that holds, the highest being there for its time alone; 0: none does.
smallest() {
    sort -g -k1,1 -k3,3 | awk '
        $1 != d[m] { d[++m] = $1; first[m] = NR }
        { t[NR] = $3; ok[m] += $2; n[m]++ }
        END {
            for (i = 1; i <= m; i++)
                mid[i] = (t[first[i] + int((n[i] - 1) / 2)] + t[first[i] + int(n[i] / 2)]) / 2
            own = (mid[m - 1] - mid[m]) / (1 / d[m - 1] - 1 / d[m])
            whole = own > 0 ? mid[m] - own / d[m] : mid[m - 1]
            for (i = m - 1; i > 0; i--) {
                holds = 3 * ok[i] >= 2 * n[i] && mid[i] <= 1.02 * whole
                held += holds
                if (holds && 2 * held > m - i)
                    least = d[i]
            }
            print least + 0
        }'
}
compare() { # compare WHAT "ALGO SIZE"...
    local of what=$1 r k round first least
    for r in "${@:2}"; do
        first=$(auto $r)
        echo "$first" >"$dir/chosen"
        : >"$dir/runs"
        for round in 1 2 3; do
            for k in -3 -2 -1 0 1 2 3 8; do
                fixed $r "$(awk -v c="$first" -v k=$k 'BEGIN { f = c * 1.3 ^ k + 1; printf "%d", f < 1e6 ? f : 1e6 }')" >>"$dir/runs"
            done
            auto $r >>"$dir/chosen"
        done
        of=$(sort -g "$dir/chosen" | awk '{ a[NR] = $1 } END { printf "%d", sqrt(a[2] * a[3]) }')
        least=$(smallest <"$dir/runs")
        row "auto dilation, $r, $what" "$of" times "the smallest that holds fidelity" "$least" 0.667 "$([ "$least" -ge "$of" ] || echo time)"
    done
}

[ -z "${BENCH_QUICK:-}" ] || { skipped "auto dilation" "takes minutes (make bench)"; exit 0; }
compare "machine as it is" "ring 64K" "sharp 4M"
taskset -c 0 sh -c 'while :; do :; done' &
job=$!
compare "one core busy" "ring 64K" "sharp 4M"
