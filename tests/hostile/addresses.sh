#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process of h2 sends frames with the addresses and queue pairs of others to h1: none arrives, each is counted under its name, and
# the log names the process. A message with the right PSN does not enter a connection of other processes.
. "$(dirname "$0")/../e2e/lib.sh"
attack=$TRIB_BUILD/tests/hostile/addresses
exec_on() { timeout 60 "$root/scripts/trib" exec "$1" -- "${@:2}"; }

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
log=$(echo "$run"/leaf-spine-8/proc/*.log)

# 15 kinds of frames, 50 of each, and 10 that are the process's own.
exec_on h1 "$attack" witness 6 >"$tmp/witness.out" 2>&1 &
witness=$!
until_true 10 grep -q 'slot 0' "$tmp/witness.out" || fail "no witness"
exec_on h2 "$attack" forge h1 h0 >"$tmp/forge.out" 2>&1 || fail "attacker: $(tail -n 1 "$tmp/forge.out")"
wait $witness || fail "witness"
has 'sent 760 from slot 0' "$tmp/forge.out"
has 'received: 10 datagrams, 0 of connections, 0 notifications, 0 others' "$tmp/witness.out"
counted() { [ "$(total "$1")" = "$2" ] || fail "$1: found $(total "$1"), expected $2"; }
counted drop_foreign_mac 150
counted drop_foreign_ip 350
counted drop_foreign_qpn 150
counted drop_foreign_arp 100
for why in mac ip qpn arp; do
    has "h2\\.0\\.0: a frame was dropped: .*foreign_$why" "$log"
done
lines=$(grep -c 'h2\.0\.0: a frame was dropped' "$log")
[ "$lines" -le 40 ] || fail "$lines lines in the log for a second or two of four kinds, expected one a second of each"
trib status >"$tmp/status.out"
has 'offender h2\.0\.0 sent 750 frames that it may not send' "$tmp/status.out"
has_not 'shut' "$tmp/status.out"

# Two hosts have a connection, and wait for a message that does not come.
exec_on h0 "$TRIB_BUILD/tests/tools/verbs_idle" listen $port >"$tmp/listen.out" 2>&1 &
exec_on h1 "$TRIB_BUILD/tests/tools/verbs_idle" connect $port >"$tmp/connect.out" 2>&1 &
for side in listen connect; do
    until_true 10 grep -q idle "$tmp/$side.out" || fail "no connection: $(cat "$tmp/$side.out")"
done
for psn in 0 1 2; do
    # from another host, and from another process of the peer's own host
    for host in h2 h0; do
        exec_on $host "$attack" inject h1 h0 $psn >"$tmp/inject.out" 2>&1 || fail "attacker: $(tail -n 1 "$tmp/inject.out")"
    done
done
sleep 0.5
for side in listen connect; do
    has_not 'an event' "$tmp/$side.out"
done
counted drop_foreign_mac 534
counted drop_foreign_qpn 342
