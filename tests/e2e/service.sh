#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A fabric as a service: trib up --wait tells that it is up, ends when the fabric does, takes it down at a signal; the unit is right by
# systemd-analyze and runs without privileges that it does not need.
. "$(dirname "$0")/lib.sh"
dir=$run/two-hosts

begin() {
    rm -f "$tmp/up.out" # what the last one said
    "$root/scripts/trib" up "$conf/two-hosts.conf" --wait >"$tmp/up.out" 2>&1 &
    pid=$!
    until_true 10 grep -q 'is up' "$tmp/up.out" || fail "up --wait: $(cat "$tmp/up.out")"
}
for signal in TERM HUP; do # a shell in the background does not see INT
    begin
    trib exec h0 -- ibv_devices >"$tmp/exec.out" 2>&1 || fail "exec"
    kill -0 $pid 2>/dev/null || fail "up --wait does not wait"
    kill -$signal $pid
    wait $pid || fail "$signal: exit code $?"
    has 'two-hosts is down' "$tmp/up.out"
    [ -e "$dir" ] && fail "$signal: $dir is left"
done
# a signal to all of its processes, of which this one is the slowest
begin
kill -STOP $pid
switch=$(pids_in "$dir"/proc/*.pid)
kill -TERM $switch
ended() { ! kill -0 $switch 2>/dev/null; }
until_true 10 ended || fail "TERM: the switch process goes on"
kill -TERM $pid
kill -CONT $pid
wait $pid || fail "TERM to all: exit code $?: $(cat "$tmp/up.out")"
has 'two-hosts is down' "$tmp/up.out"
[ -e "$dir" ] && fail "TERM to all: $dir is left"
begin
kill -KILL "$(pids_in "$dir"/proc/*.pid)"
wait $pid && fail "a dead switch process: exit code 0"
has 'two-hosts is down' "$tmp/up.out"
trib down >/dev/null 2>&1

# what starts services is told
if command -v systemd-notify >/dev/null; then
    python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(10)
print(s.recv(4096).decode())' "$tmp/notify" >"$tmp/told.out" 2>&1 &
    listener=$!
    until_true 5 test -S "$tmp/notify" || fail "no socket"
    export NOTIFY_SOCKET=$tmp/notify
    begin
    unset NOTIFY_SOCKET
    wait $listener
    has '^READY=1' "$tmp/told.out"
    kill $pid
    wait $pid
fi

command -v systemd-analyze >/dev/null || skip "all but the unit: no systemd-analyze"
sed "s|@BIN@|$root/scripts|" "$root/packaging/systemd/tributary@.service.in" >"$tmp/tributary@.service"
systemd-analyze verify --man=no "$tmp/tributary@.service" >"$tmp/verify.out" 2>&1 || fail "systemd-analyze verify"
grep -v 'tributary' "$tmp/verify.out" >"$tmp/others.out" # of units of this machine
has_not 'tributary@' "$tmp/verify.out"
if systemd-analyze security --offline=true --threshold=30 "$tmp/tributary@.service" >"$tmp/security.out" 2>&1; then
    tail -n 1 "$tmp/security.out"
else
    has_not 'Overall exposure' "$tmp/security.out"
fi
true
