#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the measured presets predict beside published measurements, a part of `make validate` in less than a minute: no class may get worse
# than tests/validate/expected.tsv by more than a point, and a class that does is told.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"

# NCCL's tuner: what NCCL 2.29 printed for four H100 (us, GB/s), and where its logs on eight leave the ring's LL for NVLS.
tuner=$root/scripts/nccl_tuner.py
"$tuner" h100 1 4 >"$tmp/tuner" || fail "nccl_tuner.py"
for line in 'ring LL 10.2 94.0' 'ring LL128 25.4 220.8' 'ring Simple 28.8 240.0' 'tree Simple 32.4 165.6' 'nvls Simple 25.0 160.0'; do
    grep -qE "^${line// / +}\$" "$tmp/tuner" || fail "the tuner does not say $line: $(cat "$tmp/tuner")"
done
"$tuner" h100 1 8 | awk '/from bytes/ { on = 1; next } on { print $1, $2, $3 }' >"$tmp/choices"
printf '%s\n' '8 ring LL' '2097152 nvls Simple' | cmp -s - "$tmp/choices" || fail "eight H100: $(cat "$tmp/choices")"
"$tuner" h100 1 1 2>"$tmp/tuner" && fail "the tuner took one GPU"
grep -q '^usage' "$tmp/tuner" || fail "one GPU: $(cat "$tmp/tuner")"

run() { "$root/scripts/validate" --quick --build "$TRIB_BUILD" "$@" >"$tmp/validate.out" 2>&1; }

run --expected "$root/tests/validate/expected.tsv" || fail "$(tail -n 5 "$tmp/validate.out")"
grep -q '^h100-node ' "$tmp/validate.out" || fail "no row of class h100-node: $(tail -n 5 "$tmp/validate.out")"

sed 's/^\(h100-node\t\)[0-9.]*/\10.1/' "$root/tests/validate/expected.tsv" >"$tmp/better"
run --expected "$tmp/better" && fail "a class that got worse was not told"
grep -q '^validate: h100-node: median error is ' "$tmp/validate.out" || fail "which class got worse was not told: $(tail -n 2 "$tmp/validate.out")"

run --class x && fail "an unknown class was taken"
grep -q 'found class x, expected one of ' "$tmp/validate.out" || fail "an unknown class: $(cat "$tmp/validate.out")"
