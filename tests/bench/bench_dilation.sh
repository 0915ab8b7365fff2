#!/usr/bin/env bash
# What `dilation = auto` chooses for a row, of the smallest factor at which the row holds fidelity: on the machine as it is, and with
# one of its cores busy. Each choice is that of a job of this row alone, which begins from a guess; the median of three. Then fixed
# factors are tried: one holds by the rule that auto follows when three of its four runs do by their lateness, and their median time is
# at most 2 % more than it would be without the machine's own work, which is 1 / factor of it: by the times at what auto chose and at four
# times that. The smallest is found by halving the interval between what holds and what does not, in ratio, to within a tenth.
# Prints JSON objects, one a line.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
own_fabric
conf=conf/leaf-spine-8.conf

perf() { # perf ALGO SIZE ARG...: its JSON in $dir/out.json
    scripts/trib perf $conf --algo "$1" -b "$2" -e "$2" -c 0 --max-wall 1 -J "$dir/out.json" "${@:3}" >"$dir/out" 2>&1 ||
        { tail -5 "$dir/out" >&2; exit 1; }
}
chosen() { # chosen ALGO SIZE
    for _ in 1 2 3; do
        perf "$1" "$2" -n 5
        jq '.results[0].dilation' "$dir/out.json"
    done | median
}
runs() { # runs ALGO SIZE FACTOR: "true|false TIME" of four
    scripts/trib up $conf --dilation "$3" >"$dir/out" 2>&1 || { tail -5 "$dir/out" >&2; exit 1; }
    for _ in 1 2; do
        perf "$1" "$2" -n 5
        jq -r '.results[] | "\(.fidelity.ok) \(.time_us)"' "$dir/out.json"
    done
    scripts/trib down >/dev/null
}
middle() { sort -g | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'; }
holds() { # holds ALGO SIZE FACTOR
    local of
    of=$(runs "$@")
    [ "$(grep -c true <<<"$of")" -ge 3 ] && awk -v t="$(cut -d' ' -f2 <<<"$of" | middle)" -v w="$whole" 'BEGIN { exit !(t <= 1.02 * w) }'
}
smallest() { # smallest ALGO SIZE FROM
    local low high=$3 d k whole
    whole=$(printf '%s\n' "$(runs "$@" | cut -d' ' -f2 | middle)" "$(runs "$1" "$2" $((4 * $3)) | cut -d' ' -f2 | middle)" |
        awk '{ t[NR] = $1 } END { print (t[1] > t[2] ? t[2] - (t[1] - t[2]) / 3 : t[2]) }')
    for ((k = 0; k < 4; k++)); do # up to a factor that holds
        holds "$1" "$2" "$high" && break
        high=$((high * 2))
    done
    low=$((high / 4 + 1))
    while d=$(awk -v l=$low -v h=$high 'BEGIN { if (h / l > 1.1) printf "%d\n", sqrt(l * h) }') && [ -n "$d" ] && [ "$d" -gt $low ]; do
        if holds "$1" "$2" "$d"; then high=$d; else low=$d; fi
    done
    echo "$high"
}
compare() { # compare WHAT "ALGO SIZE"...
    local of what=$1 r
    for r in "${@:2}"; do
        of=$(chosen $r)
        row "auto dilation, $r, $what" "$of" times "the smallest that holds fidelity" "$(smallest $r "$of")" 0.667 time
    done
}

[ -z "${BENCH_QUICK:-}" ] || { skipped "auto dilation" "takes minutes (make bench)"; exit 0; }
compare "machine as it is" "ring 64K" "sharp 4M"
taskset -c 0 sh -c 'while :; do :; done' &
job=$!
compare "one core busy" "ring 64K" "sharp 4M"
