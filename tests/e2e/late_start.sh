#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks that begin later than they should make a row's time longer: it says that it cannot be trusted.
. "$(dirname "$0")/lib.sh"
${CC:-cc} -O2 -shared -fPIC -o "$tmp/oversleep.so" "$root/tests/tools/preload/oversleep.c" || fail "oversleep.so"

trib up "$conf/two-hosts.conf" --dilation 20000 >/dev/null || fail "no fabric"
row() { # row NAME ENV...: the first row of a ring of 1 MiB
    local name=$1
    shift
    env "$@" "$root/scripts/trib" perf two-hosts --algo ring -b 1M -e 1M -n 1 -J "$tmp/$name.json" >"$tmp/$name.out" 2>&1 || fail "$name: $(cat "$tmp/$name.out")"
}
row late LD_PRELOAD="$tmp/oversleep.so" OVERSLEEP_FROM_NS=500000 OVERSLEEP_NS=60000000
jq -e '.results[0] | .fidelity.ok == false and .time_us / .predicted_us > 1.05' "$tmp/late.json" >/dev/null ||
    fail "a start 60 ms late, 3 us of fabric time: $(jq -c '.results[0] | [.fidelity, .time_us, .predicted_us]' "$tmp/late.json")"
in_time() { row in_time && jq -e '.results[0] | .fidelity.ok and .time_us / .predicted_us < 1.05' "$tmp/in_time.json" >/dev/null; }
in_time || in_time || in_time || fail "a start in time: $(jq -c '.results[0] | [.fidelity, .time_us, .predicted_us]' "$tmp/in_time.json")"
