#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Kills and stops at random moments, under load, of ranks, of verbs programs and of trib-switch processes: whoever fails names the one
# that was killed or stopped, a stop that is short enough is outlived, nothing is left behind. KILLS=30 makes it a campaign; SEED draws
# the moments and the victims.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

name=leaf-spine-8-procs
RANDOM=${SEED:=$((RANDOM))}
echo "SEED=$SEED"

up() { trib up "$conf/$name.conf" --dilation 1 >"$tmp/up.out" 2>&1 || fail "no fabric"; }
between() { # MIN_MS MAX_MS, in seconds
    local ms=$(($1 + RANDOM % ($2 - $1 + 1)))
    printf '%d.%03d' $((ms / 1000)) $((ms % 1000))
}
busy() { [ "$(total rx_frames)" -gt $((before + 3000)) ]; }

# A job on all hosts that goes on until it is ended; then its output is in $out, its pid in $perf.
start_job() { # ALGO
    out=$tmp/job$i.out before=$(total rx_frames)
    TRIB_RUN=$run/$name "$TRIB_BUILD/trib-perf" "$conf/$name.conf" --algo "$1" -b 1M -e 1M -n 1000000 -w 0 --max-wall 3600 >"$out" 2>&1 &
    perf=$!
    until_true 30 busy || fail "$what: the run did not get under way: $(cat "$out")"
    sleep "$(between 0 400)"
}
# Every rank but one says so within 20 s, and none is left: blames TEXT [RANK]
blames() {
    local t0 took r missed=
    t0=$(date +%s%N)
    wait $perf && fail "$what: exit code 0"
    took=$((($(date +%s%N) - t0) / 1000000))
    [ $took -lt 25000 ] || fail "$what: the others took $took ms to end"
    for ((r = 0; r < 8; r++)); do
        [ "$r" = "${2:-}" ] || grep -qE "^trib-perf: rank $r \(h$r\): $1" "$out" || missed="$missed $r"
    done
    [ -z "$missed" ] || fail "$what: rank$missed did not say /$1/: $(grep trib-perf: "$out" | cut -c1-300)"
    ranks $perf && fail "$what: a rank is left over"
    true
}
# Or the job has not noticed: then it goes on, and ends when it is told to.
outlived_or_blames() {
    local was
    sleep 2.5
    if kill -0 $perf 2>/dev/null; then
        was=$(total rx_frames)
        sleep 0.3
        [ "$(total rx_frames)" -gt "$was" ] || sleep 3
        if kill -0 $perf 2>/dev/null; then
            [ "$(total rx_frames)" -gt "$was" ] || fail "$what: the job hangs"
            kill -INT $perf
            wait $perf
            has 'interrupted' "$out"
            outlived=$((outlived + 1))
            return
        fi
    fi
    blames "$@"
}
stop_for() { # SECONDS PID
    kill -STOP "$2" || fail "$what: nobody to stop"
    sleep "$1"
    kill -CONT "$2"
}
algo() { [ $((RANDOM % 2)) = 0 ] && echo sharp || echo ring; }

a_rank_is_killed() {
    local r=$((RANDOM % 8)) pid
    start_job "$(algo)"
    pid=$(ranks $perf | sed -n "$((r + 1))p")
    kill -9 "$pid" || fail "$what: no rank to kill"
    blames "rank $r \(h$r, pid $pid\) was killed by signal 9" $r
}
a_rank_is_stopped_for_a_while() {
    local r=$((RANDOM % 8)) pid
    start_job "$(algo)"
    pid=$(ranks $perf | sed -n "$((r + 1))p")
    stop_for "$(between 20 900)" "$pid"
    outlived_or_blames "rank $r \(h$r, pid $pid\) was stopped for"
}
a_rank_is_stopped() {
    local r=$((RANDOM % 8)) pid
    start_job "$(algo)"
    pid=$(ranks $perf | sed -n "$((r + 1))p")
    kill -STOP "$pid"
    blames "rank $r \(h$r, pid $pid\) is stopped" $r
}
some_switch() { # of those that hosts hang on, or all
    local all=(leaf0 leaf1 spine0 spine1)
    echo "${all[RANDOM % $1]}"
}
a_switch_is_killed() {
    local sw
    sw=$(some_switch 2)
    start_job "$(algo)"
    kill -9 "$(pids_in "$run/$name/proc/$sw.pid")"
    blames "trib-switch $sw \(pid [0-9]+, nodes .*$sw.*\) has died"
    trib down >/dev/null || fail "$what: down"
    [ -e "$run/$name" ] && fail "$what: down left $run/$name"
    up
}
a_switch_is_stopped_for_a_while() {
    local sw pid
    sw=$(some_switch 4)
    pid=$(pids_in "$run/$name/proc/$sw.pid")
    start_job "$(algo)"
    stop_for "$(between 20 900)" "$pid"
    outlived_or_blames "trib-switch $sw \(pid $pid, nodes .*$sw.*\) was stopped for"
}
a_switch_is_stopped() {
    local sw pid
    sw=$(some_switch 2)
    pid=$(pids_in "$run/$name/proc/$sw.pid")
    start_job "$(algo)"
    kill -STOP "$pid"
    blames "trib-switch $sw \(pid $pid, nodes .*$sw.*\) is stopped"
    kill -CONT "$pid"
}

# verbs_exact, by its arguments: the shells around it have them too.
program_of() {
    local p
    for p in $(pgrep -f "verbs_exact $tmp/meet $1"); do
        [ "$(readlink "/proc/$p/exe")" = "$(readlink -f "$TRIB_BUILD/tests/tools/verbs_exact")" ] && echo "$p" && return
    done
}
under_way() { [ -n "$(program_of server)" ] && busy; }
start_program() { # SECONDS
    before=$(total rx_frames)
    (exact h$((RANDOM % 4)) h$((4 + RANDOM % 4)) "$1" 14 7) >"$tmp/pair.out" 2>&1 &
    pair=$!
    until_true 10 under_way || fail "$what: no traffic: $(cat "$tmp/pair.out")"
    sleep "$(between 0 400)"
}
a_program_ends() { # SIGNAL
    local server t0
    start_program 30
    server=$(program_of server)
    t0=$(date +%s%N)
    kill "-$1" "$server"
    wait $pair && fail "$what: its peer ended well"
    [ $((($(date +%s%N) - t0) / 1000000)) -lt 5000 ] || fail "$what: its peer waited for too long"
    has 'transport retry counter exceeded' "$tmp/pair.out"
    kill -KILL "$server" 2>/dev/null
    gone() { [ -z "$(program_of '')" ]; }
    until_true 5 gone || fail "$what: a program is left over"
}
a_program_is_killed() { a_program_ends KILL; }
a_program_is_stopped() { a_program_ends STOP; }
a_program_is_stopped_for_a_while() {
    start_program 3
    stop_for "$(between 20 900)" "$(program_of server)"
    wait $pair || fail "$what: $(tail -n 3 "$tmp/pair.out")"
}

kinds=(a_rank_is_killed a_program_is_stopped_for_a_while a_switch_is_stopped_for_a_while a_rank_is_stopped_for_a_while a_program_is_killed
    a_switch_is_killed a_rank_is_stopped a_program_is_stopped a_switch_is_stopped)
outlived=0
up
for ((i = 0; i < ${KILLS:-4}; i++)); do
    what=${kinds[i % ${#kinds[@]}]}
    $what
    [ "${KILLS:-4}" -lt 10 ] || echo "$((i + 1)) $what"
done
echo "$i kills and stops, of the short stops of ranks and switches $outlived were not noticed"
what="what is left"
idle() {
    "$TRIB_BUILD/trib-telemetry" "$run/$name" /trib/an >"$tmp/an.out" && ! grep -E '"(groups|slots_granted|slots_used|mbufs_promised)": [1-9]' "$tmp/an.out"
}
until_true 20 idle || fail "an aggregation node still has a group: $(cat "$tmp/an.out")"
TRIB_RUN=$run/$name perf_ok next -b 64K -e 64K -n 2
