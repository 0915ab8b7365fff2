#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What commands and programs say of a trib-switch that does not answer: one that is stopped, one that has died, one that another PID
# namespace runs, and one that cannot start because its run directory is full.
. "$(dirname "$0")/lib.sh"

dir=$run/leaf-spine-8-procs
trib up leaf-spine-8-procs >/dev/null || fail "no fabric"

# Stopped: it is named, with what lets it go on, and nobody waits for it.
pid=$(pids_in "$dir/proc/leaf0.pid")
kill -STOP "$pid"
within() { # within OUTPUT CMD...
    local out=$tmp/$1.out
    shift
    timeout 9 "$root/scripts/trib" "$@" >"$out" 2>&1
    echo "rc $?" >>"$out"
    has_not '^rc 124' "$out"
}
within status status
has "trib-switch leaf0: pid $pid, stopped by a signal or a debugger; kill -CONT $pid lets it go on" "$tmp/status.out"
has 'dilation [0-9]+$' "$tmp/status.out"
has '^rc 0' "$tmp/status.out"
within exec exec h0 -- ibv_devinfo
has 'trib-switch leaf0 does not answer: it is stopped' "$tmp/exec.out"
has_not 'no fabric is up' "$tmp/exec.out"
for to in z.pcap z.pcapng; do
    within capture capture h0-leaf0 -o "$tmp/$to" -t 1
    has 'leaf0 does not answer: it is stopped' "$tmp/capture.out"
    has '^rc 1' "$tmp/capture.out"
    has_not 'frames in' "$tmp/capture.out"
done
within link link h0-leaf0
has 'leaf0 does not answer: it is stopped' "$tmp/link.out"
within telemetry telemetry leaf0 /trib/dilation
has '^rc 1' "$tmp/telemetry.out"
kill -CONT "$pid"

# Died: each program is told, once, and one whose NIC it ran by an asynchronous event too. A fabric that is taken down has not died.
for h in h0 h7; do trib exec $h -- stdbuf -oL ibv_asyncwatch -d trib0 >"$tmp/$h.out" 2>&1 & done
for h in h0 h7; do until_true 20 grep -q 'async event FD' "$tmp/$h.out" || fail "no ibv_asyncwatch"; done
sleep 1.2 # for what they know of the fabric's processes
kill -KILL "$pid"
for h in h0 h7; do
    until_true 10 grep -q 'has died' "$tmp/$h.out" || fail "$h is not told"
    has "^tributary: $h: trib-switch leaf0 \(pid $pid, nodes .*leaf0.*\) has died: killed by signal 9 \(Killed\)" "$tmp/$h.out"
done
has 'IBV_EVENT_PORT_ERR' "$tmp/h0.out"
has_not 'IBV_EVENT_PORT_ERR' "$tmp/h7.out"
within exec exec h0 -- ibv_devinfo
has 'trib-switch leaf0 has died: killed by signal 9' "$tmp/exec.out"
trib down >/dev/null || fail "down"
for h in h0 h7; do
    until_true 10 grep -q 'is down' "$tmp/$h.out" || fail "$h is not told that the fabric is down"
    [ "$(grep -c 'has died' "$tmp/$h.out")" = 1 ] || fail "$h: told of $(grep 'has died' "$tmp/$h.out")"
done

# A full run directory, where it can be made.
small=$tmp/small
mkdir "$small"
for size in 4k 16k nr_inodes=9; do
    [[ $size == nr_* ]] || size=size=$size
    mount -t tmpfs -o "$size,mode=700" none "$small" 2>/dev/null || break
    TRIB_RUN=$small/r trib up two-hosts >"$tmp/full.out" 2>&1 && fail "up in a full directory"
    umount "$small"
    has 'No space left on device' "$tmp/full.out"
    has_not '\(nothing\)' "$tmp/full.out"
done

# Another PID namespace that shares the directory: the lock that is held tells that the fabric runs.
unshare -p -f --mount-proc true 2>/dev/null || skip "all but another PID namespace"
trib up two-hosts --dilation 1000 >/dev/null || fail "no fabric"
pod() { unshare -p -f --mount-proc "$root/scripts/trib" "$@" >"$tmp/pod.out" 2>&1; }
pod status || fail "status in another PID namespace"
has 'trib-switch fabric: runs in another PID namespace' "$tmp/pod.out"
has_not 'have ended' "$tmp/pod.out"
pod down && fail "down in another PID namespace: exit code 0"
has "processes run in another PID namespace" "$tmp/pod.out"
has_not 'is down' "$tmp/pod.out"
pod up two-hosts && fail "up twice"
has 'is up already \(a process of another PID namespace' "$tmp/pod.out"
pod exec h0 -- ibv_devinfo || fail "exec in another PID namespace"
pod perf -b 4K -e 4K -n 1 -w 0 --max-wall 60 || fail "perf in another PID namespace"
pod status --json || fail "status --json"
jq -e '.fabrics[0].processes[0] | .pid == null and .state == "ready"' "$tmp/pod.out" >/dev/null || fail "$(cat "$tmp/pod.out")"
trib down >/dev/null || fail "down"
# and the other way: it was started there, and is seen and ended from here
unshare -p -f --mount-proc sh -c "'$root/scripts/trib' up two-hosts && sleep 100" >"$tmp/there.out" 2>&1 &
until_true 20 grep -q 'is up' "$tmp/there.out" || fail "up in another PID namespace"
rm "$run/two-hosts/fabric.path"
trib status >"$tmp/status.out" 2>&1 || fail "status of a fabric of another PID namespace"
has_not 'left alone' "$tmp/status.out"
trib down >"$tmp/down.out" 2>&1 || fail "down of a fabric of an inner PID namespace"
has_not 'left alone' "$tmp/down.out"
[ ! -e "$run" ] || fail "left $run"
