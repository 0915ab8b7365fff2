#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# load: any
# All links of a node, or of the fabric, at once; a switch that forgets its groups; a fabric whose keeper was killed.
# tier: core
. "$(dirname "$0")/lib.sh"

refused() { # refused TEXT ARG...
    local text=$1
    shift
    trib "$@" >"$tmp/refused.out" 2>&1 && fail "trib $* was taken"
    has "$text" "$tmp/refused.out"
}
says() { # says TEXT ARG...
    local text=$1
    shift
    trib "$@" >"$tmp/says.out" 2>&1 || fail "trib $*: $(cat "$tmp/says.out")"
    has "$text" "$tmp/says.out"
}

trib up "$conf/leaf-spine-8-procs.conf" --dilation 100 >/dev/null || fail "no fabric"
says '^no link of leaf-spine-8-procs is down or has faults' link
says '^spine0: 2 links, 0 down$' node spine0
says '^spine0: 2 links, 2 down$' node spine0 down
says '^leaf1:4-spine0:1: down$' link
trib exec h0 -- "$TRIB_BUILD/trib-telemetry" "$run/leaf-spine-8-procs" /trib/nodes >/dev/null || fail "no telemetry"
says '^spine0: 2 links, 0 down$' node leaf-spine-8-procs spine0 up
says '^spine0: 2 links, 0 down$' node spine0 restart
says '^h0: 1 links, 1 down$' node h0 down
says '^h0:0-leaf0:0: down$' link
trib node h0 up >/dev/null
says '^leaf0:4-spine0:0: loss=0.001$' link all loss=0.1%
[ "$(wc -l <"$tmp/says.out")" = 12 ] || fail "not every link: $(cat "$tmp/says.out")"
says '^no link of leaf-spine-8-procs is down or has faults$' link all clear
refused 'found a host, expected a switch to restart' node h0 restart
refused 'found spien0, expected a node that trib plan shows; did you mean spine0\?' node spien0 down
refused 'expected a link that trib plan shows, or all; did you mean h0-leaf0\?' link h0-leaf00 down
refused "found 'fly', expected down, up or restart" node spine0 fly

trib status >"$tmp/status.out"
has_not 'no trib-keep watches it' "$tmp/status.out"
pid=$(sed -n 's/^ *trib-switch spine0: pid \([0-9]*\).*/\1/p' "$tmp/status.out")
kill -KILL "$(awk '{ print $4 }' "/proc/$pid/stat")"
sleep 0.2
trib status >"$tmp/status.out"
has 'no trib-keep watches it' "$tmp/status.out"
trib down >/dev/null || fail "down without a keeper"
