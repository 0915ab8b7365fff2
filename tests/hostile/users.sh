#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Several users on one machine: the same conf, by the same names, at the same time, with XDG_RUNTIME_DIR in common as /tmp is; each sees,
# measures and stops its own. `trib status --all` shows root all of them with their nodes, and a user its own with the names of others.
# A process that looks like another user's fabric is shown as its own user's. Down by root has the owner's rights.
. "$(dirname "$0")/../e2e/lib.sh"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip "not root: no other users"
alice=65533 bob=65534
. "$(dirname "$0")/lib_users.sh"
mkdir -m 1777 "$w/tmp"
install_in "$w"
as() { # as UID ARG...: trib ARG... by that user
    (cd "$w/tmp" && timeout -k 2 60 env XDG_RUNTIME_DIR="$w/tmp" TRIB_BUILD="$w" setpriv --reuid "$1" --regid "$1" --clear-groups "$w/scripts/trib" "${@:2}") </dev/null
}
adir=$w/tmp/tributary-$alice/two-hosts bdir=$w/tmp/tributary-$bob/two-hosts

# ---- side by side ----
for u in $alice $bob; do
    as $u up two-hosts --dilation 100 >"$tmp/up$u.out" 2>&1 &
done
wait
for u in $alice $bob; do
    has 'fabric two-hosts is up' "$tmp/up$u.out"
    as $u perf two-hosts -b 4K -e 4K -f 4 -n 2 --algo ring,sharp --max-wall 5 >"$tmp/perf$u.out" 2>&1 &
done
wait
for u in $alice $bob; do has 'values : 0 OK' "$tmp/perf$u.out"; done
as $alice status >"$tmp/status.out" || fail "status"
has "run directory $adir" "$tmp/status.out"
has_not "$bdir" "$tmp/status.out"

# ---- status --all ----
XDG_RUNTIME_DIR=$w/tmp trib status --all >"$tmp/all.out" 2>&1 || fail "status --all by root"
for d in "$adir" "$bdir"; do
    grep -A 2 "run directory $d, since 20[0-9-]* [0-9:]*" "$tmp/all.out" >"$tmp/one.out" || fail "status --all by root has not $d: $(cat "$tmp/all.out")"
    has "trib-switch fabric: pid $(pids_in "$d/proc/fabric.pid"), 3 nodes: h0 h1 switch0" "$tmp/one.out"
    has "fabric two-hosts of user " "$tmp/one.out"
done
as $alice status --all >"$tmp/alice.out" 2>&1 || fail "status --all by a user"
grep -A 1 "run directory $adir" "$tmp/alice.out" | grep -q '3 nodes: h0 h1 switch0' || fail "a user's own nodes: $(cat "$tmp/alice.out")"
grep -A 1 "run directory $bdir" "$tmp/alice.out" >"$tmp/one.out" || fail "another user's fabric is not shown: $(cat "$tmp/alice.out")"
has 'pid [0-9]+, nodes not known' "$tmp/one.out"
has_not 'nodes: h0' "$tmp/one.out"

# ---- each its own ----
for cmd in "down two-hosts" "link two-hosts h0-switch0 down" "exec two-hosts h0 -- true" "capture two-hosts h0-switch0 -o $w/tmp/x -t 0.1"; do
    # shellcheck disable=SC2086
    (cd "$w/tmp" && TRIB_RUN=$bdir TRIB_BUILD=$w setpriv --reuid $alice --regid $alice --clear-groups "$w/scripts/trib" $cmd) >"$tmp/other.out" 2>&1 &&
        fail "trib $cmd on another user's fabric"
    has "is user nobody's|is user $bob's|is not up" "$tmp/other.out"
done
as $bob exec two-hosts h0 -- true >/dev/null 2>&1 || fail "bob's fabric is not as it was"

# ---- a process that wants to look like bob's fabric, in bob's directory and with control characters ----
setpriv --reuid $alice --regid $alice --clear-groups bash -c 'exec -a trib-switch perl -e "sleep 30" -- --proc "$0" --run "$1"' $'x\e[31m' "$bdir" &
fake=$!
sleep 0.5
XDG_RUNTIME_DIR=$w/tmp trib status --all >"$tmp/all.out" 2>&1 || fail "status --all by root"
grep -qP '[\x00-\x08\x0b-\x1f\x7f-\xff]' "$tmp/all.out" && fail "control characters: $(cat -v "$tmp/all.out")"
[ "$(grep -A 3 "of user $(getent passwd $bob | cut -d: -f1 || echo $bob): run directory $bdir" "$tmp/all.out" | grep -c 'trib-switch')" = 1 ] ||
    fail "a process of another user's passes for bob's: $(cat "$tmp/all.out")"

grep -A 1 "of user .*$alice.*: run directory $bdir" "$tmp/all.out" | grep -qF "trib-switch x?[31m: pid $fake, nodes not known (the run directory is not its user's" || fail "who it is of is not shown: $(cat "$tmp/all.out")"
kill $fake

# ---- root takes one down, with its owner's rights; the other one stays ----
TRIB_RUN=$adir trib status >"$tmp/root.out" 2>&1 || fail "status by root: $(cat "$tmp/root.out")"
has "fabric two-hosts of user .*run directory $adir" "$tmp/root.out"
TRIB_RUN=$adir trib exec h0 -- true >"$tmp/root.out" 2>&1 && fail "root enters another user's fabric"
has 'root can use trib status and trib down' "$tmp/root.out"
TRIB_RUN=$adir trib down >"$tmp/root.out" 2>&1 || fail "down by root: $(cat "$tmp/root.out")"
[ ! -e "$adir" ] || fail "down by root left $(find "$adir")"
as $alice status >"$tmp/status.out" 2>&1 && fail "alice's fabric is up after root's down"
has "fabric two-hosts of user .* is up: run directory $bdir" "$tmp/status.out"
as $bob status >/dev/null 2>&1 || fail "bob's fabric went with alice's"
as $bob down >/dev/null || fail "bob's down"
[ ! -e "$w/tmp/tributary-$bob" ] || fail "left: $(find "$w/tmp")"
exit 0
