#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Attacks from seeds: RUNS (200) runs from FIRST (1) on, each a program of h6 or h7 that its seed chooses, some of them killed in the middle.
# Meanwhile h0 to h5 run two jobs (one with QUARTER), by SHARP and by ring, again and again. Every result must be exact and none by another algorithm,
# every switch process must live, and the log must name the offender. PER (10) runs share a fabric.
#
#   SWITCH=build-asan/trib-switch   this trib-switch instead of the build's: one with sanitizers
#   QUARTER=1                       the attacker gets a quarter of a core, the dilation is chosen by the jobs, and their rows must say the
#                                   truth: those that are ok are within 10 % of virtual time, and at least half are ok
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/e2e/lib.sh
runs=${RUNS:-200} first=${FIRST:-1} per=${PER:-10} quarter=${QUARTER:-}
attack=$TRIB_BUILD/tests/hostile
fixed=(--dilation 1000) iters=200
[ -z "$quarter" ] || { fixed=() iters=20; }
victims="h0 h1 h2 h3 h4 h5"

if [ -n "${SWITCH:-}" ]; then
    mkdir "$tmp/b"
    ln -s "$TRIB_BUILD"/* "$tmp/b/"
    ln -sf "$(realpath "$SWITCH")" "$tmp/b/trib-switch"
    TRIB_BUILD=$tmp/b
fi
cp "$conf/leaf-spine-8.conf" "$tmp/leaf-spine-8.conf"
trib sim "$tmp/leaf-spine-8.conf" all_reduce --algo sharp,ring -g 6 -b 64K -e 64K -n 3 -J "$tmp/sim.json" >/dev/null || fail "no simulation"

# jobs NAME ALGO: one job after the other until the batch is over; a line for each run that has failed
jobs_of() {
    local n=0
    while [ ! -e "$tmp/over" ]; do
        n=$((n + 1))
        trib perf --algo "$2" -g 6 -b 64K -e 64K -n "$iters" --max-wall "${quarter:+3}6" -J "$tmp/$1.$n.json" >"$tmp/$1.out" 2>&1
        case $? in
        0 | 4) ;; # 4: --max-wall left a run unmeasured or unchecked
        *) echo "$1: exit code $?: $(tail -n 1 "$tmp/$1.out")" >>"$tmp/failed" ;;
        esac
        grep -qE '"wrong": [1-9]' "$tmp/$1.$n.json" && echo "$1: wrong elements" >>"$tmp/failed"
        grep -q 'fell back' "$tmp/$1.out" && echo "$1: $(grep -m 1 'fell back' "$tmp/$1.out")" >>"$tmp/failed"
        echo "$1" >>"$tmp/done"
    done
}

# A quarter of a core: it runs 25 of 100 ms.
throttle() {
    local pid
    while kill -0 "$1" 2>/dev/null; do
        for pid in $(pgrep -P "$1") "$1"; do kill -STOP "$pid" 2>/dev/null; done
        sleep 0.075
        for pid in $(pgrep -P "$1") "$1"; do kill -CONT "$pid" 2>/dev/null; done
        sleep 0.025
    done
}

# draw WORD...: one of them
draw() { eval "echo \"\$$((1 + RANDOM % $#))\""; }

# attack SEED
attack() {
    RANDOM=$1
    local host=h$((6 + RANDOM % 2)) frames=$((2000 + RANDOM % 20000)) cmd pid
    case $((RANDOM % 12)) in
    0 | 1 | 2) cmd="storm $1 $frames 3 $tmp/x.pcap" ;;
    3 | 4) cmd="storm $1 $frames 3" ;;
    5) cmd="peer_down 1 $victims" ;;
    6) cmd="igmp_reports 2 4 1" ;;
    7) cmd="addresses forge h1 h0" ;;
    8) cmd="replay $tmp/x.pcap 2" ;;
    9) cmd="joins $(draw empty own half) 16 1" ;;
    10) cmd="page 2 $(draw "" rings)" ;;
    11) cmd="slots $run/leaf-spine-8 $(draw h0 h3) 8 2" ;;
    esac
    echo "seed $1: $host $cmd" >>"$tmp/attacks"
    # shellcheck disable=SC2086
    timeout -k 1 20 "$root/scripts/trib" exec $host -- $attack/$cmd >"$tmp/attack.out" 2>&1 </dev/null &
    pid=$!
    [ -z "$quarter" ] || throttle $pid &
    if [ $((RANDOM % 4)) = 0 ]; then
        sleep "1.$((RANDOM % 10))"
        kill -KILL $(pgrep -P $pid) 2>/dev/null
    fi
    wait $pid 2>/dev/null
    trib link h6-leaf1 up >/dev/null 2>&1
    trib link h7-leaf1 up >/dev/null 2>&1
}

# A switch process that ended, or a sanitizer's report in its log.
sane() {
    local p
    for p in "$run"/leaf-spine-8/proc/*.pid; do
        [ ! -e "${p%.pid}.ended" ] || echo "$(basename "$p" .pid): $(cat "${p%.pid}.ended")" >>"$tmp/failed"
    done
    grep -hE 'Sanitizer|runtime error:|assertion' "$run"/leaf-spine-8/proc/*.log >>"$tmp/failed"
}

named=0
for ((seed = first; seed < first + runs; seed += per)); do
    rm -f "$tmp/over" "$tmp/attacks" "$tmp/failed"
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
        trib up "$tmp/leaf-spine-8.conf" "${fixed[@]}" >/dev/null 2>"$tmp/up.out" || fail "no fabric: $(cat "$tmp/up.out")"
    jobs_of sharp ${quarter:+ring,}sharp &
    one=$!
    two=
    [ -n "$quarter" ] || { jobs_of ring ring & two=$!; }
    until_true 120 test -e "$tmp/done" || fail "no job ends"
    trib capture h1-leaf0 -o "$tmp/x.pcap" -t 0.5 >"$tmp/capture.out" 2>&1 || fail "no capture: $(tail -n 1 "$tmp/capture.out")"
    for ((s = seed; s < seed + per && s < first + runs; s++)); do attack "$s"; done
    : >"$tmp/over"
    # shellcheck disable=SC2086
    wait $one $two
    sane
    grep -qhE 'h[67]\.0\.[0-9]+: (a frame|its slot|refused)|h[67]: .*(quota|refus)' "$run"/leaf-spine-8/proc/*.log && named=$((named + 1))
    if [ -s "$tmp/failed" ]; then
        cat "$tmp/failed" "$tmp/attacks"
        cp "$run"/leaf-spine-8/proc/*.log /tmp/ 2>/dev/null
        fail "seeds $seed to $((s - 1))"
    fi
    trib down >/dev/null 2>&1
    echo "seeds $seed to $((s - 1)): ok, $(wc -l <"$tmp/done") jobs so far"
done
[ "$named" -gt 0 ] || fail "no offender was named"
echo "$runs attacks beside $(wc -l <"$tmp/done") jobs: every result exact, every switch alive; offenders named in $named of $(((runs + per - 1) / per)) fabrics"
[ -n "$quarter" ] || exit 0
jq -s --slurpfile sim "$tmp/sim.json" '
    ([$sim[0].results[] | {key: .algo, value: .time_us}] | from_entries) as $virtual
    | [.[].results[]? | select(.time_us)]
    | {rows: length, ok: [.[] | select(.fidelity.ok)] | length,
       apart: [.[] | select(.fidelity.ok) | (.time_us / $virtual[.algo]) | select(. > 1.1 or . < 0.9)]}' "$tmp"/sharp.*.json >"$tmp/rows.out" ||
    fail "no rows"
jq -c . "$tmp/rows.out"
jq -e '.apart == [] and .ok * 2 >= .rows' "$tmp/rows.out" >/dev/null || fail "rows that are apart, or less than half of them ok"
