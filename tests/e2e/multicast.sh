#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# UD multicast by plain verbs: what one host sends to a group reaches the attached queue pairs of two others, on its own leaf and
# beyond the spines, each message once, in order; and no longer the one that detached, to whose host it is not even sent.
. "$(dirname "$0")/lib.sh"
mcast=$TRIB_BUILD/tests/tools/verbs_mcast

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
pids=()
for args in "h0 sender $port" "h1 member $port 0" "h5 member $port 1"; do
    # shellcheck disable=SC2086
    set -- $args
    host=$1
    shift
    timeout 90 "$root/scripts/trib" exec "$host" -- "$mcast" "$@" >"$tmp/$host.out" 2>&1 &
    pids+=($!)
done
for p in "${pids[@]}"; do
    wait "$p" || fail "$(tail -n 2 "$tmp"/h?.out)"
done
received() { awk '$1 == "rx_packets" { print $2 }' "$run"/leaf-spine-8/port/"$1"/*.lock; }
echo "h1 received $(received h1) frames, h5 $(received h5)"
[ "$(received h5)" -ge 200 ] || fail "h5 received $(received h5) frames, expected the first 200"
[ "$(received h1)" -ge 400 ] || fail "h1 received $(received h1) frames, expected 400"
[ $(($(received h1) - $(received h5))) -gt 100 ] || fail "h5 received $(received h5) frames, expected 200 less than h1's $(received h1)"
grep -hE '^drop_[a-z_]* [1-9]' "$run"/leaf-spine-8/port/*/*.lock >"$tmp/drops.out" && fail "dropped: $(cat "$tmp/drops.out")"
true
