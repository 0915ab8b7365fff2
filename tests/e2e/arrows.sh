#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/arrows.sh, a part of make lint: folders use what rooms.mk names and no other, and a planted include, call, line and folder is found; so is
# a name in a line that nothing needs.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v git >/dev/null && command -v cc >/dev/null || skip "no git or no cc"
"$root/scripts/arrows.sh" "$TRIB_BUILD" >"$tmp/tree.out" || fail "$(cat "$tmp/tree.out")"
"$root/scripts/arrows.sh" "$tmp" >"$tmp/tree.out" && fail "passes without objects"
has "found no objects in" "$tmp/tree.out"

# A tree of its own: base/ below fabric/ and machine/, which do not know each other, fabric/inner/, and a plug-in, which may call what public headers
# declare.
mkdir -p "$tmp/w/scripts" "$tmp/w"/{base,fabric/inner,machine,plugins/nccl} "$tmp/w/build"/{base,fabric/inner,machine,plugins/nccl,man}
cp "$root/scripts/arrows.sh" "$tmp/w/scripts"
git -C "$tmp/w" init -q
rooms() { # rooms LINE...
    printf 'USES_%s\n' "$@" >"$tmp/w/rooms.mk"
}
rule=('base :=' 'fabric := base fabric/inner' 'fabric/inner := fabric' 'machine := base' 'plugins/nccl :=')
upper='int upper(void); int upper(void) { return 1; }' lower='int lower(void); int lower(void) { return 2; }'
plug='int plug(void); int upper(void); int plug(void) { return upper(); }'
beside='int lower(void); int beside(void); int beside(void) { return lower(); }'
inner='int upper(void); int inner(void); int inner(void) { return upper(); }'
user="int lower(void); int inner(void); $upper int user(void); int user(void) { return lower() + inner(); }"
put() { # put FILE TEXT: the file and its object
    printf '%s\n' "$2" >"$tmp/w/$1.c"
    cc -I "$tmp/w" -c "$tmp/w/$1.c" -o "$tmp/w/build/$1.o" || fail "$1.c does not compile"
}
finds() { # finds TEXT: that line alone; without TEXT none
    local rc=0
    bash "$tmp/w/scripts/arrows.sh" build >"$tmp/arrows.out" || rc=$?
    [ "$(cat "$tmp/arrows.out")" = "${1:-}" ] || fail "expected '${1:-nothing}': $(cat "$tmp/arrows.out")"
    [ "$rc" = $((${1:+1} + 0)) ] || fail "exit status $rc: ${1:-nothing}"
}
rooms "${rule[@]}"
put fabric/upper "$user"
put fabric/inner/inner "$inner"
put base/lower "$lower"
put machine/beside "$beside"
put plugins/nccl/plug "$plug"
touch "$tmp/w/fabric/upper.h"
finds
# Up: a call, an include, a line.
put base/lower "$lower int upper(void); int user_below(void); int user_below(void) { return upper(); }"
finds 'arrows: base/lower.o: found a call of upper() of fabric, expected one of what rooms.mk lets base use'
put base/lower '#include "fabric/upper.h"'"
$lower"
finds 'arrows: base/lower.c: found #include "fabric/upper.h", expected a header of what rooms.mk lets base use'
rooms "${rule[@]/#base :=/base := fabric}"
finds 'arrows: rooms.mk: found fabric in the line of base, expected folders above it'
rooms "${rule[@]}"
put base/lower "$lower"
# Sideways.
put machine/beside '#include "fabric/upper.h"'"
$beside"
finds 'arrows: machine/beside.c: found #include "fabric/upper.h", expected a header of what rooms.mk lets machine use'
put machine/beside "$beside int upper(void); int too(void); int too(void) { return upper(); }"
finds 'arrows: machine/beside.o: found a call of upper() of fabric, expected one of what rooms.mk lets machine use'
rooms "${rule[@]/#machine := base/machine := base fabric}"
finds
put machine/beside "$beside"
# What nothing needs, which a whole build shows.
finds
touch "$tmp/w/build/man/trib.1"
finds 'arrows: rooms.mk: found fabric in the line of machine, which nothing in it uses'
rooms "${rule[@]}" 'base/inner := nowhere'
finds 'arrows: rooms.mk: found nowhere in the line of base/inner, expected a folder that has a line'
rooms "${rule[@]}"
finds
mkdir "$tmp/w/elsewhere" "$tmp/w/build/elsewhere"
put elsewhere/part '#include "fabric/upper.h"'
finds 'arrows: elsewhere/part.c: its folder has no line in rooms.mk'
