#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Verbs programs that know nothing of the emulator run between emulated hosts.
# load: any
# tier: core
. "$(dirname "$0")/lib.sh"
command -v ibv_rc_pingpong >/dev/null || skip "no ibv_rc_pingpong"

trib up "$conf/two-hosts.conf" --dilation 100 >/dev/null || fail "no fabric"
for args in "" "-s 65536 -n 100" "-e"; do
    # shellcheck disable=SC2086
    trib exec h0 -- ibv_rc_pingpong -g 0 -p $port -n 200 $args >"$tmp/server.out" 2>&1 &
    server=$!
    until_true 20 listens || fail "the server does not listen, $args"
    # shellcheck disable=SC2086
    timeout 60 "$root/scripts/trib" exec h1 -- ibv_rc_pingpong -g 0 -p $port -n 200 $args 127.0.0.1 >"$tmp/client.out" 2>&1 || fail "client, $args"
    wait $server || fail "server, $args"
    next_port
done

# One that reads its memory only: the other side's writes come without its asking for completions.
memory=$TRIB_BUILD/tests/tools/verbs_memory
trib exec h0 -- "$memory" listen $port 500 >"$tmp/server.out" 2>&1 &
server=$!
trib exec h1 -- timeout 100 "$memory" connect $port 500 >"$tmp/client.out" 2>&1 || fail "client that reads memory only"
wait $server || fail "server that reads memory only"
has '^500 round trips' "$tmp/client.out"
cat "$tmp/client.out"
