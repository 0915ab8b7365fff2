#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that is not trusted, run by trib exec --isolate, by an ordinary user and by root: it sees, signals and traces no other process
# of its user, sees of the run directories of its user only what it needs to be its host, and takes none of this away again, in namespaces
# of its own neither. It is a host all the same, with as many processes as it likes; signals, exit codes and stdin pass; all ends with it.
. "$(dirname "$0")/../e2e/lib.sh"
command -v ibv_rc_pingpong >/dev/null && command -v unshare >/dev/null || skip "no ibv_rc_pingpong or unshare"
. "$(dirname "$0")/lib_users.sh"
install_in "$w"
[ ! -e "$TRIB_BUILD/libtribhint.so" ] || cp "$TRIB_BUILD/libtribhint.so" "$w/"

# The attacks that the program tries. $1: run directory, $2: pid of a process of the same user outside, $3: a second fabric's, $4: one elsewhere
cat >"$w/attack" <<'SH'
run=$1 victim=$2
bad() { echo "BAD: $*"; }
[ "$(ps ax -o pid= | wc -l)" -le 5 ] || bad "sees processes: $(ps ax)"
kill -0 "$victim" 2>/dev/null && [ -r "/proc/$victim/environ" ] && grep -qa sleep "/proc/$victim/cmdline" && bad "signals process $victim"
[ "$(find "$run" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' ')" = "fabric.conf fabric.path link port proc " ] || bad "run directory: $(ls "$run")"
[ "$(ls "$run/port")" = h0 ] || bad "other hosts: $(ls "$run/port")"
[ -z "$(ls "$run/proc" "$run/link" | grep -v '\.page$\|:$\|^$')" ] || bad "processes and links: $(ls "$run/proc" "$run/link")"
for d in "$3" "$4"; do [ -z "$d" ] || [ ! -e "$d" ] || [ -z "$(ls -A "$d")" ] || bad "another fabric: $(ls "$d")"; done
echo x 2>/dev/null >>"$run/fabric.conf" && bad "writes to the conf"
for d in "$run" "$(dirname "$run")" "$run/fabric.conf" "$run/port/h0" /proc /dev /sys/class /dev/shm; do
    umount -l "$d" 2>/dev/null && bad "takes the mount at $d away"
    unshare --user --map-root-user --mount umount -l "$d" 2>/dev/null && bad "takes the mount at $d away in a namespace of its own"
done
unshare --user --map-root-user --mount --pid --fork --mount-proc ps ax 2>/dev/null | grep -q "sleep 5[0-9]" && bad "sees processes in a namespace of its own"
for p in 1 $$; do for l in root cwd; do [ ! -e "/proc/$p/$l$run/keeper" ] || bad "finds the run directory by /proc/$p/$l"; done; done
find /proc/1/fd /proc/self/fd -lname "$run*" 2>/dev/null | grep -q . && bad "an open descriptor of the run directory"
[ "$(cat /sys/class/infiniband/trib0/node_desc)" = h0 ] || bad "is not h0"
mount -t tmpfs x /mnt 2>/dev/null && [ "$(id -u)" != 0 ] && bad "mounts"
echo done
SH
chmod 755 "$w/attack"

outlived() { ! pgrep -U "$1" -f '^sleep 299' >/dev/null; }
test_as() { # test_as UID
    local dir other elsewhere as=(env TRIB_BUILD="$w" XDG_RUNTIME_DIR="$w/r$1")
    [ "$1" = "$(id -u)" ] || as+=(setpriv --reuid "$1" --regid "$1" --clear-groups)
    mkdir -m 700 "$w/r$1" "$w/t$1"
    chown "$1:$1" "$w/r$1" "$w/t$1"
    t() { (cd / && exec timeout -k 2 60 "${as[@]}" "$w/scripts/trib" "$@"); }
    dir=$w/r$1/tributary-$1/two-hosts other=$w/r$1/tributary-$1/single-switch-4
    t up two-hosts --dilation 1 >/dev/null || fail "$1: up"
    t up single-switch-4 --dilation 1 >/dev/null || fail "$1: up"
    "${as[@]}" sleep 55 &
    sleeper=$!
    t exec --isolate two-hosts h0 -- true 2>"$tmp/isolate.out" || {
        grep -q 'the machine refuses' "$tmp/isolate.out" && { echo "$(cat "$tmp/isolate.out")"; t down two-hosts; t down single-switch-4; return; }
        fail "$1: $(cat "$tmp/isolate.out")"
    }
    t exec --isolate two-hosts h0 -- bash "$w/attack" "$dir" $sleeper "$other" >"$tmp/attack.out" 2>&1
    has_not BAD "$tmp/attack.out"
    has '^done$' "$tmp/attack.out"
    # as a host: more processes than there are sockets when it starts
    t exec two-hosts h1 -- sh -c "for i in 1 2 3 4 5; do ibv_rc_pingpong -g 0 -n 50 -p \$(($port + i)) >/dev/null & done; wait" >"$tmp/pong.out" 2>&1 &
    pong=$!
    sleep 1
    t exec --isolate two-hosts h0 -- sh -c "for i in 1 2 3 4 5; do ibv_rc_pingpong -g 0 -n 50 -p \$(($port + i)) 127.0.0.1 >$w/t$1/\$i 2>&1 & done; wait
        sleep 300 & echo in >$w/t$1/left" || fail "$1: isolated pingpongs"
    wait $pong
    [ "$(cat "$w/t$1"/[1-5] | grep -c '50 iters')" = 5 ] || fail "$1: pingpongs: $(cat "$w/t$1"/*)"
    pgrep -U "$1" -f '^sleep 300' >/dev/null && fail "$1: a process of the program outlives it"
    # what passes through
    [ "$(echo in | t exec --isolate two-hosts h0 -- sh -c 'cat; echo $TRIB_HOST')" = "in"$'\n'"h0" ] || fail "$1: stdin and environment"
    t exec --isolate two-hosts h0 -- sh -c 'exit 42'
    [ $? = 42 ] || fail "$1: exit code"
    (cd / && exec "${as[@]}" "$w/scripts/trib" exec --isolate two-hosts h0 -- sh -c "trap 'exit 43' TERM; echo \$\$ >$w/t$1/up; while :; do sleep 0.05; done") &
    until_true 10 test -s "$w/t$1/up" || fail "$1: did not start"
    kill -TERM $!
    wait $!
    [ $? = 43 ] || fail "$1: SIGTERM does not reach the program"
    (cd / && exec "${as[@]}" "$w/scripts/trib" exec --isolate two-hosts h0 -- sh -c "echo x >$w/t$1/up2; exec sleep 299") 2>/dev/null &
    until_true 10 test -s "$w/t$1/up2" || fail "$1: did not start"
    kill -KILL $!
    until_true 10 outlived "$1" || fail "$1: it outlives the process outside"
    kill -0 $sleeper || fail "$1: the process outside was ended"
    kill $sleeper
    t down two-hosts >/dev/null && t down single-switch-4 >/dev/null || fail "$1: down"
}
test_as "$(id -u)"
[ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null || test_as 65530

# where namespaces are forbidden: an error, and nothing runs
trib up two-hosts --dilation 1 >/dev/null || fail "up"
if unshare --user --map-root-user true 2>/dev/null; then
    unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"' - "$root/scripts/trib" exec --isolate h0 -- touch "$w/ran" >"$tmp/no.out" 2>&1 &&
        fail "isolates without namespaces"
    has 'cannot isolate h0: the machine refuses a user namespace: No space.*max_user_namespaces' "$tmp/no.out"
    [ ! -e "$w/ran" ] || fail "runs a program that is to be isolated without namespaces"
fi
exit 0
