#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Keys of confs in documents (scripts/docs_keys.py, a part of make docs-check): the tree passes, and a key without meaning, one whose default is said
# twice, one that nothing reads, one that is read and in no table, a table that no page has and a table that differs are found.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v git >/dev/null && command -v python3 >/dev/null || skip "no git or no python3"
(cd "$root" && git ls-files -co --exclude-standard scripts docs fabric sim/jobs base/units.h io/trunk python/tributary rooms.mk '*.md' '*.h' \
    switch/queue io/telemetry base/log.h '*.3' | tar -cf - -T - 2>/dev/null) | (mkdir "$tmp/w" && tar -xf - -C "$tmp/w")
git -C "$tmp/w" init -q
finds() { # finds TEXT: a mistake that has it; without TEXT no mistake of keys
    local rc=0
    "$tmp/w/scripts/docs_tables.py" --check "$tmp/none" >"$tmp/keys.out" || rc=$?
    if [ -n "${1:-}" ]; then
        [ "$rc" = 1 ] || fail "exit status $rc, expected 1: $1"
        has "$1" "$tmp/keys.out"
    elif grep -E 'fabric/conf|keys of|a table differs' "$tmp/keys.out"; then
        fail "found mistakes in the tree, expected none"
    fi
}
change() { # change FILE PATTERN BY TEXT: finds TEXT while the first of them is changed
    cp "$tmp/w/$1" "$tmp/kept"
    perl -0pi -e "s|$2|$3|" "$tmp/w/$1"
    cmp -s "$tmp/w/$1" "$tmp/kept" && fail "found no $2 in $1"
    finds "$4"
    cp "$tmp/kept" "$tmp/w/$1"
}
finds
change fabric/conf/conf_links.c '/\* Whether PFC keeps[^/]*/' '' 'fabric/conf/conf_links.c: found pfc without a comment before its row, expected its meaning'
change fabric/conf/conf_links.c 'class lossless\.' 'class lossless. Default: true.' 'found the default of pfc in its row and in its comment, expected it once'
change fabric/conf/conf_links.c 'OWN_KEY\("of"\),' 'OWN_KEY("of"), /* Nothing. */ OWN_KEY("nothing"),' 'fabric/conf/conf_links.c: found nothing in a table of keys, which nothing reads'
change fabric/conf/conf_links.c 'config_setting_get_member\(g, "of"\)' 'config_setting_get_member(g, "off")' 'fabric/conf/conf_links.c: found off, which is read and in no table of keys'
change docs/confs.md '<!-- from: keys links -->' '<!-- from: keys `rails` -->' 'keys of links: no page has them, expected <!-- from: keys links -->'
change fabric/conf/conf_links.c 'P\(pfc\), "true"' 'P(pfc), "false"' 'docs/confs.md: a table differs from the code'
finds
