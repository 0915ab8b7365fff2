#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# arrows.sh [BUILD]: checks what folders use against rooms.mk: every #include and, with BUILD, whose objects are there, every call. Fails on a use
# that rooms.mk does not name, on a folder that it lets use one below (those inside of a folder apart), and, where BUILD is whole, on a use that it
# names and nothing needs.
set -u
cd "$(dirname "$0")/.." || exit 1

tree() { git ls-files --cached --others --exclude-standard "$@" | awk '!/^tests\// || /^tests\/support\//'; }

# "FILE include FOLDER HEADER", "OBJECT call FOLDER,FOLDER SYMBOL" (those that define it)
includes() {
    tree '*.c' '*.h' '*.cu' | xargs grep -HE '^#include ("|<(tributary|sharp|nccl)/)' |
        sed -E 's|^(.*):#include <(.*)>.*|\1 include/\2|; s|^(.*):#include "(.*)".*|\1 \2|' |
        awk '{ folder = $2; if (!sub(/\/[^\/]*$/, "", folder)) folder = "."; print $1, "include", folder, $2 }'
}
# Whoever defines a function of glibc or libibverbs once more does so for a program that it is linked to or preloaded into.
library() {
    local lib
    for lib in libc.so.6 libibverbs.so; do
        lib=$(cc -print-file-name=$lib)
        [ ! -f "$lib" ] || nm -D --defined-only "$lib" | awk '{ sub(/@.*/, "", $NF); print "library", $NF }'
    done
}
objects() { # objects BUILD: of mains of trib plan and trib model there are the wide ones alone
    tree '*.c' | while read -r f; do
        for o in "$1/${f%.c}.o" "$1/wide/${f%.c}.o"; do
            [ ! -f "$o" ] || { echo "$o"; break; }
        done
    done
}
calls() { # calls BUILD
    { library; objects "$1" | xargs -r nm -A -g; } | sed "s|^$1/\(wide/\)\?||" | awk '
    $1 == "library" { library[$2] = 1; next }
    {
        object = $1; sub(/:.*/, "", object)
        folder = object; sub(/\/[^\/]*$/, "", folder)
        if ($(NF - 1) == "U") { n++; caller[n] = object; called[n] = $NF }
        else if (object !~ /\/trib_[a-z_]*\.o$/ && !($NF in library)) definer[$NF] = definer[$NF] (definer[$NF] ? "," : "") folder
    }
    END { for (i = 1; i <= n; i++) if (called[i] in definer) print caller[i], "call", definer[called[i]], called[i] }'
}

check() { # check BUILD or nothing
    local whole=
    [ ! -f "$1/man/trib.1" ] || whole=1
    { includes; [ -z "$1" ] || calls "$1"; } | awk -v build="$1" -v whole="$whole" '
    function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
    function refuse(text) { print "arrows: " text; bad = 1 }
    function may(a, b) { return a == b || (a " " b) in allowed }
    BEGIN {
        while ((getline line < "rooms.mk") > 0) {
            n = split(line, w, " ")
            if (w[1] !~ /^(USES|UP)_/) continue
            a = w[1]; sub(/^[A-Z]*_/, "", a)
            if (w[1] ~ /^USES_/) place[a] = ++rooms
            for (i = 3; i <= n; i++) {
                allowed[a " " w[i]] = 1
                if (w[1] ~ /^UP_/) up[a " " w[i]] = 1
            }
        }
        for (pair in allowed) {
            split(pair, w, " ")
            if (!(w[2] in place)) refuse("rooms.mk: found " w[2] " in the line of " w[1] ", expected a folder that has a line")
            else if (place[w[2]] > place[w[1]] && !(pair in up) && index(w[2], w[1] "/") != 1)
                refuse("rooms.mk: found " w[2] " in the line of " w[1] ", expected folders above it")
        }
    }
    {
        a = folder_of($1)
        if (!(a in place)) { refuse($1 ": its folder has no line in rooms.mk"); next }
        n = split($3, d, ",")
        for (i = 1; i <= n && !may(a, d[i]); i++);
        if (i <= n) used[a " " d[i]] = 1
        else if ($2 == "include") refuse($1 ": found #include \"" $4 "\", expected a header of what rooms.mk lets " a " use")
        # Plug-ins call what include/tributary declares, whoever defines it.
        else if (a !~ /^(plugins|examples)\//) refuse($1 ": found a call of " $4 "() of " $3 ", expected one of what rooms.mk lets " a " use")
    }
    END {
        if (build) {
            for (folder in compiled) objects = 1
            if (!objects) refuse("found no objects in " build ", expected a build")
            if (whole) for (pair in allowed) if (!(pair in used)) {
                split(pair, w, " ")
                if (w[1] in compiled) refuse("rooms.mk: found " w[2] " in the line of " w[1] ", which nothing in it uses")
            }
        }
        exit bad
    }
    $2 == "call" { compiled[a] = 1 }' | sort -u
    return "${PIPESTATUS[1]}"
}

check "${1:+${1%/}}"
