#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A host reports thousands of multicast groups, from many processes. It gets its share, the rest is refused, counted and logged with
# its name; the multicast of other hosts works. ibv_attach_mcast() beyond a host's share fails by errno in the asking process.
. "$(dirname "$0")/../e2e/lib.sh"
tools=$TRIB_BUILD/tests/tools

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
timeout 60 "$root/scripts/trib" exec h7 -- "$TRIB_BUILD/tests/hostile/igmp_reports" 3 6 40 >"$tmp/attack.out" 2>&1 &
until_true 20 grep -q '^joined' "$tmp/attack.out" || fail "attacker: $(tail -n 1 "$tmp/attack.out")"

pids=()
for args in "h0 sender $port" "h1 member $port 0" "h5 member $port 1"; do
    # shellcheck disable=SC2086
    set -- $args
    host=$1
    shift
    timeout 15 "$root/scripts/trib" exec "$host" -- "$tools/verbs_mcast" "$@" >"$tmp/$host.out" 2>&1 &
    pids+=($!)
done
for p in "${pids[@]}"; do
    wait "$p" || fail "multicast of other hosts: $(tail -n 2 "$tmp"/h?.out)"
done

# The host's share is 128, a process's 64.
attach() { timeout 30 "$root/scripts/trib" exec "$1" -- "$tools/verbs_groups" "$2" "$3" "${4:-0}"; }
attach h7 0xe8000000 10 >"$tmp/h7.out" 2>&1
has '^attached 0 of 10: ENOSPC' "$tmp/h7.out"
attach h6 0xe8000000 64 30 >"$tmp/one.out" 2>&1 &
attach h6 0xe8000100 64 30 >"$tmp/two.out" 2>&1 &
until_true 20 grep -q '^attached 64 of 64$' "$tmp/one.out" || fail "the first process: $(cat "$tmp/one.out")"
until_true 20 grep -q '^attached 64 of 64$' "$tmp/two.out" || fail "the second process: $(cat "$tmp/two.out")"
attach h6 0xe8000200 10 >"$tmp/three.out" 2>&1
has '^attached 0 of 10: ENOSPC' "$tmp/three.out"
attach h6 0xe8000020 10 >"$tmp/four.out" 2>&1 # groups that the host is in anyway
has '^attached 10 of 10$' "$tmp/four.out"

[ "$(total drop_group_quota)" -gt 1000 ] || fail "refused reports: $(total drop_group_quota)"
cat "$run"/leaf-spine-8/proc/*.log >"$tmp/log.out"
has 'h7: process slot [0-9]+ may not join multicast group' "$tmp/log.out"
[ "$(grep -c 'may not join' "$tmp/log.out")" -lt 40 ] || fail "$(grep -c 'may not join' "$tmp/log.out") lines in the log"
true
