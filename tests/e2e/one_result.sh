#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A simulation has one result, whatever the threads, traces and counters: some of the cases of tests/one_result.sh.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"
BUILD=$TRIB_BUILD "$root/tests/one_result.sh" loss reorder untold >"$tmp/one.out" 2>&1 || fail "one_result.sh: $(cat "$tmp/one.out")"
has '^3 cases, [0-9]+ runs, 0 failed$' "$tmp/one.out"
cat "$tmp/one.out"
