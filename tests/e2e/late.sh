#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A connection of timeout 14 and retry 7, half a second in all, survives delays that are no loss: a peer or a switch that is stopped for almost a
# second, and a machine that has ten times as much to do as it can. A peer that is stopped for good ends it in bounded time.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
switch=$(pids_in "$run"/leaf-spine-8/proc/*.pid)

# The process of a program that runs as HOST, below `trib exec`.
program_of() {
    local p
    for p in $(pgrep -f "verbs_exact $tmp/meet $1"); do
        [ "$(readlink "/proc/$p/exe")" = "$(readlink -f "$TRIB_BUILD/tests/tools/verbs_exact")" ] && echo "$p" && return
    done
}
under_way() { [ -n "$(program_of server)" ] && [ "$(total rx_frames)" -gt $((${frames:-0} + 3000)) ]; }

# outlives WHAT CMD...: the command disturbs a run that checks every byte.
outlives() {
    local what=$1 run
    shift
    frames=$(total rx_frames)
    (exact h0 h4 3 14 7) >"$tmp/outlives.out" 2>&1 &
    run=$!
    until_true 10 under_way || fail "$what: no traffic: $(cat "$tmp/outlives.out")"
    "$@"
    wait $run || fail "$what: $(tail -n 3 "$tmp/outlives.out")"
}
stop_for() { # SECONDS PID
    kill -STOP "$2"
    sleep "$1"
    kill -CONT "$2"
}
stop_server() { stop_for 0.9 "$(program_of server)"; }
overload() {
    local i busy=()
    for ((i = 0; i < 10 * $(nproc); i++)); do
        (while :; do :; done) &
        busy+=($!)
    done
    sleep 2
    kill "${busy[@]}"
    wait "${busy[@]}" 2>/dev/null
}

outlives "a stopped peer" stop_server
outlives "a stopped switch" stop_for 0.9 "$switch"
outlives "an overloaded machine" overload
[ "$(hca_count qp_errors)" = 0 ] || fail "$(hca_count qp_errors) queue pairs failed"

# For good: retry counter exceeded within 8 + 10 timeouts of 67 ms.
frames=$(total rx_frames)
(exact h0 h4 20 14 7) >"$tmp/gone.out" 2>&1 &
job=$!
until_true 10 under_way || fail "no traffic"
server=$(program_of server)
kill -STOP "$server"
t0=$(date +%s%N)
wait $job && fail "a run whose peer is stopped went well"
took=$((($(date +%s%N) - t0) / 1000000))
has '12|retry' "$tmp/gone.out"
[ $took -lt 4000 ] || fail "a peer that is stopped for good was waited for for $took ms"
echo "a peer stopped for good was given up after $took ms"
kill -KILL "$server" 2>/dev/null
true # whoever started it may have ended it already
