#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What every end-to-end test needs. Each runs in a directory of its own that goes away with it, with fabrics of its own.
# Sourced by the tests; not a test.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TRIB_BUILD=$(cd "${TRIB_BUILD:-$root/build}" && pwd) || exit 1
export TRIB_BUILD
unset TRIB_RUN TRIB_HOST TRIB_LIB
conf=$root/conf
tmp=$(mktemp -d /tmp/te.XXXXXX)
export XDG_RUNTIME_DIR=$tmp/r
mkdir -m 700 "$XDG_RUNTIME_DIR"
run=$XDG_RUNTIME_DIR/tributary-$(id -u)

trib() { "$root/scripts/trib" "$@"; }

# Every process of this test, its children's children too, has its directory in the environment.
own_processes() {
    local p
    for p in /proc/[0-9]*; do
        [ "${p#/proc/}" = $$ ] || [ "${p#/proc/}" = "$BASHPID" ] || ! grep -qszx "XDG_RUNTIME_DIR=$tmp/r" "$p/environ" || echo "${p#/proc/}"
    done
}

finish() {
    local rc=$? d
    trap - EXIT
    # shellcheck disable=SC2046
    kill $(jobs -p) 2>/dev/null
    for d in "$run"/*/; do
        [ -d "$d" ] && TRIB_RUN=${d%/} trib down >/dev/null 2>&1
    done
    [ "$rc" = 0 ] || [ "$rc" = 77 ] || tail -n 40 "$tmp"/*.out 2>/dev/null # a reason to skip stays the last line
    # shellcheck disable=SC2046
    kill -KILL $(own_processes) 2>/dev/null
    rm -rf "$tmp"
    exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

fail() {
    echo "FAILED: $*"
    exit 1
}
skip() {
    echo "$*"
    exit 77
}
has() { grep -qE -- "$1" "$2" || fail "expected /$1/ in $(basename "$2"):"$'\n'"$(tail -n 15 "$2")"; }
has_not() { grep -qE -- "$1" "$2" && fail "did not expect /$1/ in $(basename "$2"):"$'\n'"$(grep -E -- "$1" "$2" | head -n 5)"; true; }

# What pid files name; their second line is the process's start time.
pids_in() { awk 'FNR == 1' "$@"; }

# Sum of one counter over all ports and processes of the one fabric that is up: total COUNTER
total() {
    trib status | awk -v k="$1:" '$1 == k { n += $2 } END { print n + 0 }'
}

# One that is built with MPI (Debian 13's) takes itself for two ranks of mpirun where standard input is no terminal: options against that.
ucx_perftest_alone() { ! ucx_perftest -h 2>&1 | grep -q -- '-P <0|1>' || echo "-P 0"; }

# Nothing was sent twice, refused for want of a receive, or dropped: neither by the host processes of the fabric that is up (each
# leaves its counters in its slot's lock file), nor by the aggregation nodes, nor by a switch or NIC.
no_repeats() {
    local d=${1:-$run/leaf-spine-8} client=$TRIB_BUILD/trib-telemetry
    ls "$d"/port/*/*.lock >/dev/null 2>&1 && grep -hq '^tx_packets [1-9]' "$d"/port/*/*.lock || fail "no counters of host processes"
    grep -HE '^(retransmits|timeouts|duplicates|rnr_naks|seq_naks|drop_)[a-z_]* [1-9]' "$d"/port/*/*.lock >"$tmp/repeats.out"
    "$client" "$d" /trib/an >"$tmp/an.out" || fail "no counters of aggregation nodes"
    has retransmits "$tmp/an.out"
    grep -E '"(retransmits|timeouts|duplicates|rnr_naks|seq_naks|aborts)[a-z_]*": [1-9]' "$tmp/an.out" >>"$tmp/repeats.out"
    trib status >"$tmp/status.out"
    grep -E 'drop_|overflow|bad_frames|no_buffer' "$tmp/status.out" >>"$tmp/repeats.out"
    [ -s "$tmp/repeats.out" ] && fail "a run without faults: $(head -n 5 "$tmp/repeats.out")"
    true
}

# times_ok FILE: every row of a JSON has the times of its operations, their mean is the row's, and their statistics are in order.
times_ok() {
    jq -e '(.results | length) > 0 and all(.results[] | select(.algo != "nvls-hw"); (.times_us | add) as $sum |
        (.times_us | length) == .iters and (.times_us | all(. >= 0)) and (.time_us * .iters - $sum | fabs) <= 1e-6 * $sum and
        .min_us == (.times_us | min) and .min_us <= .median_us and .median_us <= .p99_us and .p99_us <= (.times_us | max) and
        .stddev_us >= 0)' "$1" >"$tmp/times.out" ||
        fail "times of operations: $(jq -c '.results[]' "$1")"
}

# perf_ok NAME ARG...: a run that must be right; its wide table is in $tmp/NAME.out, its JSON in $tmp/NAME.json
perf_ok() {
    local name=$1
    shift
    trib perf "$@" --wide -J "$tmp/$name.json" >"$tmp/$name.out" 2>&1 || fail "trib perf $* ended with $?"
    has 'Out of bounds values : 0 OK' "$tmp/$name.out"
    has_not '"wrong": [^0]' "$tmp/$name.json"
    times_ok "$tmp/$name.json"
}

# The ranks of a job, by pid: ranks PID_OF_TRIB_PERF. The launcher is a child of the script.
ranks() { [ -z "$1" ] || pgrep -P "$1" -f -- '--rank-process'; }

# Programs meet at $port; the next one is one on which nobody listens.
port=$((20000 + ${TEST_SLOT:-0} % 2 * 6000 + RANDOM % 5500)) # apart from those of the test that runs at the same time
listens() { grep -qi ":$(printf %04X $port) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; }
next_port() {
    port=$((port + 1))
    while listens; do port=$((port + 1)); done
}

next_port

# Waits up to SECONDS for a command to succeed: until_true SECONDS CMD...
until_true() {
    local n=$(($1 * 20))
    shift
    while ! "$@" >/dev/null 2>&1; do
        n=$((n - 1))
        [ "$n" -gt 0 ] || return 1
        sleep 0.05
    done
}
