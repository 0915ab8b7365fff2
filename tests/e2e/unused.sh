#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/unused.py, a part of make lint: the tree passes; a function that nothing uses, one that its own file alone uses, one that tests alone use and a
# reason that is out of date are found; calls, exports, pointers and tests of what a file uses itself are uses.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v git >/dev/null && command -v cc >/dev/null && command -v python3 >/dev/null || skip "no git, cc or python3"
"$root/scripts/unused.py" "$TRIB_BUILD" >"$tmp/tree.out" || fail "$(cat "$tmp/tree.out")"
"$root/scripts/unused.py" "$tmp" >"$tmp/tree.out" && fail "passes without objects"
has "found no objects in" "$tmp/tree.out"

mkdir -p "$tmp/w/scripts" "$tmp/w"/{base,io,tests} "$tmp/w/build"/{base,io}
sed '/^KEPT = {/,/^}/c\KEPT = {"kept": "a test reads it"}' "$root/scripts/unused.py" >"$tmp/w/scripts/unused.py"
cp "$root/scripts/docs_text.py" "$tmp/w/scripts"
chmod +x "$tmp/w/scripts/unused.py"
git -C "$tmp/w" init -q
put() { # put FILE TEXT: the file and its object
    printf '%s\n' "$2" >"$tmp/w/$1.c"
    cc -fPIC -c "$tmp/w/$1.c" -o "$tmp/w/build/$1.o" || fail "$1.c does not compile"
}
finds() { # finds TEXT: that line alone; without TEXT none
    local rc=0
    "$tmp/w/scripts/unused.py" build >"$tmp/unused.out" || rc=$?
    [ "$(cat "$tmp/unused.out")" = "${1:-}" ] || fail "expected '${1:-nothing}': $(cat "$tmp/unused.out")"
    [ "$rc" = $((${1:+1} + 0)) ] || fail "exit status $rc: ${1:-nothing}"
}
base='int called(void) { return 1; } int pointed(void) { return 2; } int kept(void) { return 3; } int inner(void) { return 4; }
int outer(void) { return inner(); }'
main='int called(void), pointed(void), outer(void); int (*at)(void) = pointed; int main(void) { return called() + outer(); }'
put base/base "$base"
put io/main "$main"
printf 'int kept(void), inner(void);\n' >"$tmp/w/tests/test_base.c"
finds
put base/base "$base /* planted() */ int planted(void) { return 5; }"
finds 'unused: base/base.c: found planted(), which nothing uses, expected its removal'
printf 'int kept(void), inner(void), planted(void);\n' >"$tmp/w/tests/test_base.c"
finds 'unused: base/base.c: found planted(), which tests alone use, expected it in tests/, or a reason in KEPT'
cc -shared "$tmp/w/build/base/base.o" -o "$tmp/w/build/libbase.so"
finds 'unused: scripts/unused.py: found kept in KEPT, which a program uses'
rm "$tmp/w/build/libbase.so"
put base/base "$base"
printf 'int kept(void);\n' >"$tmp/w/tests/test_base.c"
finds 'unused: base/base.c: found inner(), which its own file alone uses, expected it static'
printf 'int kept(void), inner(void);\n' >"$tmp/w/tests/test_base.c"
put io/main "${main/int called/int kept(void), called} static int use(void) { return kept(); } int (*more)(void) = use;"
finds 'unused: scripts/unused.py: found kept in KEPT, which a program uses'
