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
