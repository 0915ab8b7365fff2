#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process of h7 takes groups of its leaf: for queue pairs of a slot that nobody has, for itself alone, and with members that never
# come. The job of other hosts that comes after gets its groups and is exact; what the process got goes with it.
. "$(dirname "$0")/../e2e/lib.sh"
attack() { exec timeout 60 "$root/scripts/trib" exec h7 -- "$TRIB_BUILD/tests/hostile/joins" "$@"; }
sharp() { perf_ok "$1" --algo sharp --policy sharp -g 6 -b 64K -e 64K -n 5 --max-wall 5; }
held() { [ "$("$TRIB_BUILD/trib-telemetry" "$run/leaf-spine-8" /trib/an | awk -F'[:,]' '/"groups":/ { n += $2 } END { print n + 0 }')" = "$1" ]; }

trib up "$conf/leaf-spine-8.conf" --dilation 100 >/dev/null || fail "no fabric"

(attack empty 100 0) >"$tmp/empty.out" 2>&1 || fail "attacker: $(tail -n 1 "$tmp/empty.out")"
until_true 10 held 0 || fail "$(grep granted "$tmp/empty.out") groups stay after their process"
has '^granted 0$' "$tmp/empty.out"
has '^E_NOT_MEMBER [1-9]' "$tmp/empty.out"
sharp after_empty

attack own 100 60 >"$tmp/own.out" 2>&1 &
own=$!
until_true 20 grep -q '^E_QUOTA' "$tmp/own.out" || fail "attacker: $(tail -n 1 "$tmp/own.out")"
sharp beside_own
has '^E_QUOTA_HOST [1-9]' "$tmp/own.out"
kill "$own"
wait "$own" 2>/dev/null

attack half 100 60 >"$tmp/half.out" 2>&1 &
half=$!
until_true 20 grep -q '^E_QUOTA' "$tmp/half.out" || fail "attacker: $(tail -n 1 "$tmp/half.out")"
sleep 1.5 # 10 ms of the fabric's time, and some
sharp beside_half
kill "$half"
wait "$half" 2>/dev/null

until_true 10 held 0 || fail "groups stay after their processes"
cat "$run"/leaf-spine-8/proc/*.log >"$tmp/log.out"
has 'leaf1: JOIN refused: h7 alone has' "$tmp/log.out"
true
