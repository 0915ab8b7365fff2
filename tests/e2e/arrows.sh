#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/arrows.sh, a part of make lint: no folder includes a header of one above it, or calls a function that is defined there, and a
# planted include, call and folder is found.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v git >/dev/null && command -v cc >/dev/null || skip "no git or no cc"
"$root/scripts/arrows.sh" "$TRIB_BUILD" >"$tmp/tree.out" || fail "$(cat "$tmp/tree.out")"
"$root/scripts/arrows.sh" "$tmp" >"$tmp/tree.out" && fail "passes without objects"
has "found no objects in" "$tmp/tree.out"

# A tree of its own, with a room above base/ and a plug-in, which may call what public headers declare.
mkdir -p "$tmp/w/scripts" "$tmp/w/base" "$tmp/w/fabric" "$tmp/w/plugins/nccl" "$tmp/w/build"/{base,fabric,plugins/nccl}
cp "$root/scripts/arrows.sh" "$tmp/w/scripts"
git -C "$tmp/w" init -q
upper='int upper(void); int upper(void) { return 1; }' lower='int lower(void); int lower(void) { return 2; }'
plug='int plug(void); int upper(void); int plug(void) { return upper(); }'
put() { # put FILE TEXT: the file and its object
    printf '%s\n' "$2" >"$tmp/w/$1.c"
    cc -I "$tmp/w" -c "$tmp/w/$1.c" -o "$tmp/w/build/$1.o" || fail "$1.c does not compile"
}
finds() { # finds TEXT: that line alone, of those about the tree's files; without TEXT none
    bash "$tmp/w/scripts/arrows.sh" build | grep -v 'exception that nothing needs' >"$tmp/arrows.out"
    [ "$(cat "$tmp/arrows.out")" = "${1:-}" ] || fail "expected '${1:-nothing}': $(cat "$tmp/arrows.out")"
}
put fabric/upper "$upper"
put base/lower "$lower"
put plugins/nccl/plug "$plug"
finds
put fabric/upper "int lower(void); $upper int user(void); int user(void) { return lower(); }"
finds
put base/lower "$lower int upper(void); int user(void); int user(void) { return upper(); }"
finds 'arrows: base/lower.o: found a call of upper() of fabric, expected one of a room before base'
touch "$tmp/w/fabric/upper.h"
put base/lower '#include "fabric/upper.h"'"
$lower"
finds 'arrows: base/lower.c: found #include "fabric/upper.h", expected a header of a room before base'
put base/lower "$lower"
mkdir "$tmp/w/elsewhere" "$tmp/w/build/elsewhere"
put elsewhere/part '#include "fabric/upper.h"'
finds 'arrows: elsewhere/part.c: its folder is no room of scripts/arrows.sh'
