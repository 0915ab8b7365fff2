#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# docs/add-a-protocol.md, followed from its text: its commands, one after the other, in an empty folder against an installed prefix. What
# the page shows as output is there, up to the numbers of cases and packets; what it shows as C is in the example.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v make >/dev/null && command -v pkg-config >/dev/null || skip "no make or no pkg-config"
page=$root/docs/add-a-protocol.md

make -C "$root" --no-print-directory -s -o all install BUILD="$TRIB_BUILD" PREFIX="$tmp/prefix" >"$tmp/install.out" 2>&1 ||
    fail "make install: $(tail -n 5 "$tmp/install.out")"
example=$tmp/prefix/share/tributary/examples/protocol/tally.c

# Blocks by their number: b.N, and a line "N KIND LINE" each.
awk -v to="$tmp/b." '
    /^```/ { if (!on) { on = 1; n++; kind = $1; sub(/```/, "", kind); print n, kind == "" ? "output" : kind, NR; printf "" >(to n) }
             else { close(to n); on = 0 }
             next }
    on { print >(to n) }' "$page" >"$tmp/blocks"
[ "$(wc -l <"$tmp/blocks")" -ge 15 ] || fail "found $(wc -l <"$tmp/blocks") blocks in the page"

# All commands in one shell, each block's output in out.N.
echo 'set -eu -o pipefail' >"$tmp/all.sh"
while read -r n kind line; do
    [ "$kind" != sh ] || { echo "exec >$tmp/of.$n 2>&1; echo '# line $line' >&3"; cat "$tmp/b.$n"; } >>"$tmp/all.sh"
done <"$tmp/blocks"
mkdir "$tmp/empty"
(cd "$tmp/empty" && unset TRIB_BUILD && PREFIX=$tmp/prefix bash "$tmp/all.sh" 3>"$tmp/at.out") ||
    fail "the page's commands, $(tail -n 1 "$tmp/at.out"): $(cat "$(ls -t "$tmp"/of.* | head -n 1)")"

shape() { sed -E '/exit code|version/!s/[0-9]+/#/g; s/ +/ /g' "$@"; }
last=''
while read -r n kind line; do
    case $kind in
    sh) last=$tmp/of.$n ;;
    c) [[ "$(cat "$example")" == *"$(cat "$tmp/b.$n")"* ]] || fail "line $line of the page: this C is not in the example" ;;
    output)
        while IFS= read -r expected; do
            shape "$last" | grep -qxF -- "$(shape <<<"$expected")" ||
                fail "line $line of the page: expected '$expected' in:"$'\n'"$(cat "$last")"
        done <"$tmp/b.$n"
        ;;
    esac
done <"$tmp/blocks"

# A result says with which shared object it was made, by its hash.
(cd "$tmp/empty/my-protocol" && "$tmp/prefix/bin/trib" sim my.conf --algo tally -d int32 -b 4K -e 4K -J tally.json) >"$tmp/sim.out" 2>&1 || fail "trib sim with the shared object"
jq -e --arg hash "$(sha256sum <"$tmp/empty/my-protocol/tally.so" | cut -d' ' -f1)" '[.run.files[] | select(.path | endswith("/tally.so"))] | length == 1 and .[0].sha256 == $hash and (.[0] | has("text") | not)' \
    "$tmp/empty/my-protocol/tally.json" >"$tmp/jq.out" || fail "provenance: $(jq -c '.run.files | map(.path, .sha256)' "$tmp/empty/my-protocol/tally.json")"
