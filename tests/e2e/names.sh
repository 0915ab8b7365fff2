#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/names.py, a part of make lint: the tree passes, and a second header of a name, a second struct of a tag, a second file-local function of a
# bare name and one of a vague name are found.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v git >/dev/null && command -v python3 >/dev/null || skip "no git or no python3"
"$root/scripts/names.py" >"$tmp/tree.out" || fail "$(cat "$tmp/tree.out")"

mkdir -p "$tmp/w/scripts" "$tmp/w"/{base,fabric,io,include/tributary,tests}
cp "$root/scripts/names.py" "$tmp/w/scripts"
git -C "$tmp/w" init -q
put() { printf '%s\n' "$2" >"$tmp/w/$1"; }
finds() { # finds TEXT: that line alone; without TEXT none
    local rc=0
    "$tmp/w/scripts/names.py" >"$tmp/names.out" || rc=$?
    [ "$(cat "$tmp/names.out")" = "${1:-}" ] || fail "expected '${1:-nothing}': $(cat "$tmp/names.out")"
    [ "$rc" = $((${1:+1} + 0)) ] || fail "exit status $rc: ${1:-nothing}"
}
put base/heap.h 'struct heap { int n; };'
put base/heap.c $'static int sift(struct heap *h)\n{\n    return h->n;\n}'
put fabric/pool.c $'struct heap { int n; }; /* the same, as a wire format may be */\nstatic int refill(int n)\n{\n    return n;\n}'
put io/loop.c $'static int take_frame(int n)\n{\n    return n;\n}'
put include/tributary/heap.h 'struct heap { long n; };'
put tests/heap.h 'struct heap { long n; };'
finds
put io/heap.h ''
finds 'names: heap.h: found base/heap.h and io/heap.h, expected a base name for each header'
rm "$tmp/w/io/heap.h"
put io/ring.h 'struct heap { long n; };'
finds 'names: struct heap: found different ones in base/heap.h and fabric/pool.c and io/ring.h, expected a tag for each'
put io/ring.h $'struct heap;\nstruct ring { struct heap *h; };'
finds
put io/loop.c $'static int sift(int n)\n{\n    return n;\n}'
finds 'names: sift(): found in base/heap.c and io/loop.c, expected <object>_<verb>'
put io/loop.c $'static int take(int n)\n{\n    return n;\n}'
finds 'names: take(): found in io/loop.c, expected <object>_<verb>'
put io/loop.c $'static int sift(int n);\nstatic int take(int n);\nint take_from(int n);'
finds
