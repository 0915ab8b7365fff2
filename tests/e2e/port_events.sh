#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A host's link that goes down and comes back is told to its programs (asynchronous events, port state), and ends no connection.
. "$(dirname "$0")/lib.sh"
command -v ibv_asyncwatch >/dev/null || skip "no ibv_asyncwatch"

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
trib exec h0 -- stdbuf -oL ibv_asyncwatch -d trib0 >"$tmp/h0.out" 2>&1 &
trib exec h1 -- stdbuf -oL ibv_asyncwatch -d trib0 >"$tmp/h1.out" 2>&1 &
until_true 20 grep -q 'async event FD' "$tmp/h0.out" || fail "no ibv_asyncwatch: $(cat "$tmp/h0.out")"
until_true 20 grep -q 'async event FD' "$tmp/h1.out" || fail "no ibv_asyncwatch: $(cat "$tmp/h1.out")"
state() { trib exec h0 -- ibv_devinfo | grep -q "$1"; }

state PORT_ACTIVE || fail "the port is not active"
for round in 1 2; do
    trib link h0-leaf0 down >/dev/null || fail "link down"
    told() { [ "$(grep -c "$1" "$tmp/h0.out")" = $round ]; }
    until_true 10 told EVENT_PORT_ERR || fail "not told that the port is down: $(cat "$tmp/h0.out")"
    state PORT_DOWN || fail "ibv_devinfo does not say that the port is down"
    trib link h0-leaf0 up >/dev/null || fail "link up"
    until_true 10 told EVENT_PORT_ACTIVE || fail "not told that the port is up: $(cat "$tmp/h0.out")"
    state PORT_ACTIVE || fail "ibv_devinfo does not say that the port is up"
done
has_not EVENT "$tmp/h1.out"
trib down >/dev/null || fail "down"

# A trib-switch that dies takes the ports of its links down, to libibverbs and to sysfs: h0's is in another process than its leaf, h4's is
# with leaf1, h5's has never been looked at. One that follows brings h0's back.
sed 's/^processes.*/processes = ( { name = "hosts"; nodes = ( "h0", "h1", "h2", "h3", "spine0", "spine1" ); }, { name = "left"; nodes = ( "leaf0" ); }, { name = "right"; nodes = ( "leaf1", "h4", "h5", "h6", "h7" ); } );/' \
    "$conf/leaf-spine-8-procs.conf" >"$tmp/dies.conf"
trib up "$tmp/dies.conf" --dilation 1 >"$tmp/up.out" 2>&1 || fail "up: $(cat "$tmp/up.out")"
dir=$run/leaf-spine-8-procs
trib exec h0 -- stdbuf -oL ibv_asyncwatch -d trib0 >"$tmp/d0.out" 2>&1 &
trib exec h4 -- stdbuf -oL ibv_asyncwatch -d trib0 >"$tmp/d4.out" 2>&1 &
for h in 0 4; do until_true 20 grep -q 'async event FD' "$tmp/d$h.out" || fail "no ibv_asyncwatch: $(cat "$tmp/d$h.out")"; done
port_is() { # HOST TEXT
    (cd "$dir/port/$1/0.state" && cat state phys_state carrier operstate) 2>/dev/null | tr '\n' ' ' | grep -qx "$2 "
}
down='1: DOWN 3: Disabled 0 down' up='4: ACTIVE 5: LinkUp 1 up'
becomes() { until_true 10 port_is "$1" "$2" || fail "$1 after $3: found $(cat "$dir/port/$1/0.state"/* 2>&1), expected $2"; }
trib exec h1 -- true >/dev/null 2>&1 # somebody who looks
private=$([ -e "$dir/port/h1/0.state" ] && echo yes)
kill -9 "$(pids_in "$dir/proc/left.pid")"
becomes h0 "$down" "the death of its leaf"
until_true 10 grep -q EVENT_PORT_ERR "$tmp/d0.out" || fail "not told of its leaf's death: $(cat "$tmp/d0.out")"
state PORT_DOWN || fail "ibv_devinfo does not say that the port of a dead leaf is down"
if [ "$private" ] && command -v ibstat >/dev/null; then
    trib exec h0 -- ibstat >"$tmp/ibstat.out" 2>&1
    has 'State: Down' "$tmp/ibstat.out"
fi
has_not EVENT "$tmp/d4.out"
"$TRIB_BUILD/trib-switch" "$tmp/dies.conf" --proc left --run "$dir" --dilation 1 >"$tmp/again.out" 2>&1 &
again=$!
becomes h0 "$up" "the return of its leaf"
until_true 10 grep -q EVENT_PORT_ACTIVE "$tmp/d0.out" || fail "not told of its leaf's return: $(cat "$tmp/d0.out")"
state PORT_ACTIVE || fail "ibv_devinfo does not say that the port is up again"
kill -9 "$(pids_in "$dir/proc/right.pid")"
until_true 10 grep -q EVENT_PORT_ERR "$tmp/d4.out" || fail "not told of the death of its NIC: $(cat "$tmp/d4.out")"
becomes h4 "$down" "the death of its NIC's process"
becomes h5 "$down" "the death of its NIC's process, first looked at now"
"$TRIB_BUILD/trib-switch" "$tmp/dies.conf" --proc right --run "$dir" --dilation 1 >"$tmp/again2.out" 2>&1 &
becomes h4 "$up" "the return of its NIC"
becomes h5 "$up" "the return of its NIC"
until_true 10 grep -q EVENT_PORT_ACTIVE "$tmp/d4.out" || fail "not told of the return of its NIC: $(cat "$tmp/d4.out")"
kill $again $!
wait $again $! 2>/dev/null
trib down >/dev/null || fail "down"
[ ! -e "$dir" ] || fail "files stay behind: $(find "$dir")"
