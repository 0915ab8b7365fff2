#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Who owns a fabric and who keeps it: another user's fabric, a pid file that names somebody else's process, several `trib up` at once, a switch that
# dies, and how, a run directory that is half removed, a conf that is gone, and stopping while it starts.
. "$(dirname "$0")/lib.sh"

dir=$run/two-hosts
gone() { [ ! -e "$run" ]; }
down() { trib down >/dev/null || fail "down"; gone || fail "down left $(find "$run")"; }

# One of several at once starts the fabric; the others say which process starts it, or has started it.
for i in 1 2 3 4; do
    { trib up "$conf/two-hosts.conf" >"$tmp/up$i.out" 2>&1; echo "rc $?" >>"$tmp/up$i.out"; } &
done
wait
[ "$(cat "$tmp"/up?.out | grep -c '^rc 0$')" = 1 ] || fail "not one of four: $(cat "$tmp"/up?.out)"
[ "$(cat "$tmp"/up?.out | grep -cE '(is being started by another command|is up already) \(process [0-9]+')" = 3 ] ||
    fail "the losers do not say by whom: $(cat "$tmp"/up?.out)"
trib up two-hosts >"$tmp/again.out" 2>&1 && fail "up twice"
has "is up already \(process $(pgrep -f "trib-keep start $dir ")" "$tmp/again.out"

# Pid files with a number of somebody else's, one beside the fabric's own and one over it.
sleep 300 &
stranger=$!
echo $stranger >"$dir/proc/x.pid"
trib status >"$tmp/status.out" 2>&1 || fail "status beside a foreign pid"
has "names process $stranger \(sleep\), which is not the fabric's" "$tmp/status.out"
switch=$(pids_in "$dir/proc/fabric.pid")
echo $stranger >"$dir/proc/fabric.pid"
trib down >"$tmp/down.out" 2>&1 || fail "down beside a foreign pid"
kill -0 $stranger || fail "down killed a process that is not the fabric's"
[ ! -e "/proc/$switch" ] || fail "down left the switch, whose pid file was written over"
gone || fail "down left $run"
# one that holds the file's lock and is not trib-switch, with a start time
trib up two-hosts >/dev/null || fail "up"
python3 -c 'import fcntl, os, sys, time
f = open(sys.argv[1], "w"); fcntl.lockf(f, fcntl.LOCK_EX); f.write("%d\n%s\n" % (os.getpid(), sys.argv[2])); f.flush(); time.sleep(300)' \
    "$dir/proc/y.pid" "$(sed -n 2p "$dir/proc/fabric.pid")" 2>/dev/null &
holder=$!
! command -v python3 >/dev/null || until_true 30 test -s "$dir/proc/y.pid" || fail "nobody holds y.pid"
trib down >/dev/null 2>&1 || fail "down beside a lock of a stranger"
! command -v python3 >/dev/null || kill -0 $holder || fail "down killed a process that holds a lock"
kill $stranger $holder 2>/dev/null

# A switch that dies is reported with how it ended: at once, later, and by the fabric that is left.
mkdir "$tmp/b"
ln -s "$TRIB_BUILD"/* "$tmp/b/"
rm "$tmp/b/trib-switch"
for how in 'kill -9 $$:killed by signal 9 \(Killed\)' 'kill -SEGV $$:killed by signal 11 \(Segmentation fault\)' 'echo ouch; exit 3:ended with exit code 3'; do
    printf '#!/bin/bash\n%s\n' "${how%:*}" >"$tmp/b/trib-switch"
    chmod 755 "$tmp/b/trib-switch"
    TRIB_BUILD=$tmp/b trib up two-hosts >"$tmp/dies.out" 2>&1 && fail "up although its switch dies"
    has "trib-switch fabric did not come up: it (was )?${how#*:}" "$tmp/dies.out"
    gone || fail "a failed start left $run"
done
has ouch "$tmp/dies.out"
trib up two-hosts >/dev/null || fail "up"
kill -SEGV "$(pids_in "$dir/proc/fabric.pid")"
until_true 10 test -e "$dir/proc/fabric.ended" || fail "nobody saw how it ended"
trib status >"$tmp/status.out" 2>&1 && fail "status: exit code 0 though all is dead"
has 'trib-switch fabric: dead, killed by signal 11' "$tmp/status.out"
trib status two-hosts >"$tmp/status.out" 2>&1 && fail "status CONF: exit code 0 though all is dead"
has 'fabric two-hosts is not up' "$tmp/status.out"
down

# Half removed, or all of it: the processes are found all the same.
for what in proc keeper shared ''; do
    trib up two-hosts >/dev/null || fail "up"
    rm -rf "${dir:?}/$what"
    trib up two-hosts >"$tmp/up.out" 2>&1 && fail "up over a fabric without '$what'"
    has 'is up already' "$tmp/up.out"
    trib status >"$tmp/status.out" 2>/dev/null || fail "status of a fabric without '$what'"
    trib down two-hosts >/dev/null || fail "down of a fabric without '$what'"
    pgrep -f "trib-(switch|keep).*$tmp" && fail "a fabric without '$what' runs on"
    gone || fail "down left $run"
done

# A conf that is gone, one whose name somebody else's fabric has, and paths with spaces.
mkdir "$tmp/a b"
sed 's/^name .*/name = "mine";/' "$conf/two-hosts.conf" >"$tmp/a b/x.conf"
sed 's/300ns/900ns/' "$tmp/a b/x.conf" >"$tmp/y.conf"
trib up "$tmp/a b/x.conf" >/dev/null || fail "up of a conf in a path with a space"
for cmd in "down $tmp/y.conf" "link $tmp/y.conf h0-h1" "exec $tmp/y.conf h0 -- true"; do
    # shellcheck disable=SC2086
    trib $cmd >"$tmp/other.out" 2>&1 && fail "trib $cmd: meant another fabric of that name"
    has 'was started from another conf' "$tmp/other.out"
done
rm "$tmp/a b/x.conf"
trib exec mine h0 -- true 2>/dev/null || fail "exec by the fabric's name"
trib down "$tmp/a b/x.conf" >/dev/null || fail "down of a conf that is gone"
gone || fail "down left $run"
TRIB_RUN="$tmp/a b/r *" trib up two-hosts >/dev/null || fail "up in a directory with a space"
TRIB_RUN="$tmp/a b/r *" trib exec h0 -- true 2>/dev/null || fail "exec in a directory with a space"
TRIB_RUN="$tmp/a b/r *" trib down >/dev/null || fail "down of a directory with a space"
[ -e "$tmp/a b/r *" ] && fail "down left it"
long=$tmp/$(printf 'x%.0s' {1..120})
TRIB_RUN=$long trib up two-hosts >"$tmp/long.out" 2>&1 && fail "up in a path that is too long"
has "run directory .*: found [0-9]+ characters, expected at most" "$tmp/long.out"
[ -e "$long" ] && fail "a path that is too long was left"

# Ended while it starts, by a signal or by `trib down`: all is taken back. (More moments: tests/trib/life.)
for i in 1 2 3; do
    "$root/scripts/trib" up leaf-spine-8 >"$tmp/ended.out" 2>&1 &
    up=$!
    sleep "0.$((i * 7 % 10))$i"
    case $i in
    1) kill -TERM $up ;;
    2) kill -HUP $up ;;
    *) trib down leaf-spine-8 >/dev/null 2>&1 ;;
    esac
    wait $up && { trib down leaf-spine-8 >/dev/null 2>&1; }
    until_true 10 gone || fail "left behind by an ended start: $(find "$run")"
done
pgrep -f "trib-(switch|keep).*$tmp" && fail "an ended start left processes"

# Another user's: said by name, and left alone.
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo "not root: no other user"; exit 0; }
other=$(mktemp -d /tmp/tl.XXXXXX)
trap 'rc=$?; rm -rf "$other"; (exit $rc); finish' EXIT
chmod 755 "$other" "$tmp" "$XDG_RUNTIME_DIR"
mkdir "$other/b"
cp "$TRIB_BUILD"/trib "$TRIB_BUILD"/trib-* "$TRIB_BUILD/libtribverbs.so" "$other/b/"
cp -r "$root/scripts" "$root/conf" "$other/"
nobody() { (cd "$other" && TRIB_BUILD=$other/b setpriv --reuid 65534 --regid 65534 --clear-groups scripts/trib "$@"); }
trib up two-hosts >/dev/null || fail "up"
switch=$(pids_in "$dir/proc/fabric.pid")
for cmd in status "status two-hosts" down "down two-hosts" "exec h0 -- true" "exec two-hosts h0 -- true" "link h0-h1" \
    "capture h0-h1 -t 1 -o $other/x" "shell h0" "perf -b 4K"; do
    for where in '' "$dir"; do
        # shellcheck disable=SC2086
        TRIB_RUN=$where nobody $cmd >"$tmp/other.out" 2>&1 </dev/null && fail "trib $cmd by another user: exit code 0"
        has 'user root' "$tmp/other.out"
    done
done
kill -0 "$switch" || fail "another user ended the fabric"
TRIB_RUN=$dir nobody up two-hosts >"$tmp/other.out" 2>&1 && fail "up over another user's"
down

# A keeper that is stopped while it starts a fabric: whoever asked can still end, and the start is undone.
printf '#!/bin/bash\nexec sleep 60\n' >"$tmp/b/trib-switch"
TRIB_BUILD=$tmp/b "$root/scripts/trib" up "$conf/two-hosts.conf" >"$tmp/stopped.out" 2>&1 &
starter=$!
keeper() { pgrep -f "trib-keep start $run/two-hosts " | while read -r p; do [ "$(ps -o sid= -p "$p" | tr -d ' ')" = "$p" ] && echo "$p"; done; }
for ((i = 0; i < 500; i++)); do
    k=$(keeper)
    [ -z "$k" ] || break
    sleep 0.01
done
[ -n "$k" ] || fail "no keeper of two-hosts"
kill -STOP "$k"
sleep 0.2
kill -TERM $starter
until_true 30 gone || fail "a stopped keeper holds its starter: $(cat "$tmp/stopped.out")"
wait $starter && fail "a start that was ended has exit code 0"
true
