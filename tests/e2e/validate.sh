#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the measured presets predict beside published measurements, a part of `make validate` in less than a minute: no class may get worse
# than tests/validate/expected.tsv by more than a point, and a class that does is told.
# clock: virtual
. "$(dirname "$0")/lib.sh"

run() { "$root/scripts/validate" --quick --build "$TRIB_BUILD" "$@" >"$tmp/validate.out" 2>&1; }

run --expected "$root/tests/validate/expected.tsv" || fail "$(tail -n 5 "$tmp/validate.out")"
grep -q '^h100-node ' "$tmp/validate.out" || fail "no row of class h100-node: $(tail -n 5 "$tmp/validate.out")"

sed 's/^\(h100-node\t\)[0-9.]*/\10.1/' "$root/tests/validate/expected.tsv" >"$tmp/better"
run --expected "$tmp/better" && fail "a class that got worse was not told"
grep -q '^validate: h100-node: median error is ' "$tmp/validate.out" || fail "which class got worse was not told: $(tail -n 2 "$tmp/validate.out")"

run --class x && fail "an unknown class was taken"
grep -q 'found class x, expected one of ' "$tmp/validate.out" || fail "an unknown class: $(cat "$tmp/validate.out")"
