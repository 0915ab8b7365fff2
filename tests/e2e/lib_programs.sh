#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the tests that run verbs programs need beside lib.sh. Sourced by them; not a test.
command -v ibv_rc_pingpong >/dev/null || skip "no ibv_rc_pingpong"
command -v ib_send_bw >/dev/null || skip "no perftest"

pair() { # pair SERVER_HOST CLIENT_HOST PROGRAM ARG...
    local server=$1 client=$2 pid
    shift 2
    next_port
    timeout 60 "$root/scripts/trib" exec "$server" -- "$@" -p $port >"$tmp/server.out" 2>&1 &
    pid=$!
    until_true 10 listens || fail "$* does not listen"
    timeout 60 "$root/scripts/trib" exec "$client" -- "$@" -p $port 127.0.0.1 >"$tmp/client.out" 2>&1 || fail "$client to $server: $*"
    wait $pid || fail "server $server: $*"
}

# The same over a link that loses frames. rdma-core's examples end without a handshake: who ends first takes with it the
# answer to the other's last message, and if that answer was lost the other asks for it in vain. So one of the two may say so,
# once the other has all its messages. Their timeouts are half a second in all, which a process on a busy machine may have to
# wait for its turn: a pair that fails otherwise has a second chance, and no third.
pair_parting() {
    local try
    for try in 1 2; do
        next_port
        if (pair "$@") >"$tmp/pair.out" 2>&1; then return; fi
        grep -q ' iters in ' "$tmp/client.out" "$tmp/server.out" &&
            grep -q 'transport retry counter exceeded (12)' "$tmp/client.out" "$tmp/server.out" && return
        echo "once: $(tail -n 1 "$tmp/pair.out")"
    done
    fail "$(tail -n 3 "$tmp/pair.out")"
}

# Every byte of WRITEs, READs, atomics and SENDs is checked: exact SERVER_HOST CLIENT_HOST SECONDS [TIMEOUT [RETRIES]]
exact() {
    local server=$1 client=$2 tool=$TRIB_BUILD/tests/tools/verbs_exact pid
    shift 2
    [ -x "$tool" ] || skip "no verbs_exact; make unit-programs builds it"
    rm -rf "$tmp/meet" && mkdir "$tmp/meet"
    timeout 90 "$root/scripts/trib" exec "$server" -- "$tool" "$tmp/meet" server >"$tmp/exact_server.out" 2>&1 &
    pid=$!
    timeout 90 "$root/scripts/trib" exec "$client" -- "$tool" "$tmp/meet" client "$@" >"$tmp/exact_client.out" 2>&1 ||
        fail "exact $client to $server $*: $(tail -n 1 "$tmp/exact_client.out")"
    wait $pid || fail "exact, server $server: $(tail -n 1 "$tmp/exact_server.out")"
}

# Adds up one kind of number in the output of `trib link` for some links: link_count WHAT LINK...
link_count() {
    local what=$1 link
    shift
    for link; do trib link "$link"; done | grep -o "[0-9]* $what" | awk '{ n += $1 } END { print n + 0 }'
}

# Sum of a counter of the HCAs that ran on hosts of the fabric, the last program of each slot: hca_count NAME
hca_count() {
    cat "$run"/*/port/*/*.lock 2>/dev/null | awk -v k="$1" '$1 == k { n += $2 } END { print n + 0 }'
}
