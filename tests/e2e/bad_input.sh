#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A request without permission ends with the completion status or errno of the specification, its victim loses no byte and no other
# connection, and the counters of both show the refusal. The rows are in tests/tools/verbs_bad.c and
# verbs_local.c.
# tier: core
. "$(dirname "$0")/lib.sh"
bad=$TRIB_BUILD/tests/tools/verbs_bad

trib up "$conf/two-hosts.conf" --dilation 1 >/dev/null || fail "no fabric"
timeout 180 "$root/scripts/trib" exec h0 -- "$bad" victim $port >"$tmp/victim.out" 2>&1 &
victim=$!
timeout 180 "$root/scripts/trib" exec h1 -- "$bad" attacker $port >"$tmp/attacker.out" 2>&1 || fail "attacker: $(tail -n 1 "$tmp/attacker.out")"
wait $victim || fail "victim: $(tail -n 1 "$tmp/victim.out")"
echo "$(grep -c ^ok "$tmp/victim.out") requests refused"

# Counted where it happened: COUNTER at host HOST.
counted() {
    awk -v k="$2" '$1 == k { n += $2 } END { exit n < 1 }' "$run"/two-hosts/port/"$1"/*.lock ||
        fail "$2 of $1 is 0: $(cat "$run"/two-hosts/port/"$1"/*.lock)"
}
for c in error_naks_sent rnr_naks_sent qp_errors drop_refused drop_rnr drop_no_qp drop_uc_error drop_too_long drop_no_receive drop_qkey; do
    counted h0 $c
done
for c in error_naks_received rnr_naks_received timeouts qp_errors; do
    counted h1 $c
done

trib exec h0 -- "$TRIB_BUILD/tests/tools/verbs_local" >"$tmp/local.out" 2>&1 || fail "local: $(tail -n 1 "$tmp/local.out")"
has 'tributary: trib0: memory at 0x[0-9a-f]+ is gone \(SIGSEGV.*region of 8192 bytes at 0x[0-9a-f]+, lkey and rkey 0x[0-9a-f]+' "$tmp/local.out"
