#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mutations.sh: plants the bugs of tests/protocols/mutations.txt in a protocol, one at a time, and expects `trib check-protocol` to find
# each by one of the properties that the table names. A protocol's sources are built into a shared object outside of the tree with the
# public headers there, which have bugs too: those of examples/protocol as a user does, a built-in one under another name.
#   DRAW=N        only N of each protocol, drawn by DRAW_SEED (today's date unless set), which is printed
#   ONLY=REGEXP   only those whose protocol, operator or name matches
#   SEEDS=60      cases of each property
#   CHECK=1       only checks that each text is there exactly once
# BUILD=build has the program. Fails where a text is not there any more, and where a bug is not found.
set -u
cd "$(dirname "$0")/../.." || exit 2
root=$PWD build=${BUILD:-build} seeds=${SEEDS:-60} draw=${DRAW:-0} draw_seed=${DRAW_SEED:-$(date +%Y%m%d)}
table=${TABLE:-tests/protocols/mutations.txt} only=${ONLY:-.} compiler=${CC:-gcc}
for n in "$seeds" "$draw" "$draw_seed"; do
    [[ $n =~ ^[0-9]+$ ]] || { echo "mutations.sh: found \"$n\", expected a whole number" >&2; exit 2; }
done

# ---- the table ----
. tests/mutations_table.sh

# Of each protocol as many as are drawn.
chosen=$(for ((i = 0; i < n; i++)); do
    [ "$draw" -gt 0 ] && [[ ${by[i]} = open:* ]] && continue
    [[ ${label[i]} =~ $only ]] && echo "$i ${label[i]%%,*}"
done | awk -v seed="$draw_seed" -v draw="$draw" 'BEGIN { srand(seed) } { print draw ? rand() : NR, $1, $2 }' | sort -n |
    awk -v draw="$draw" '!draw || n[$3]++ < draw { print $2 }' | sort -n)
[ "$draw" = 0 ] || echo "# $draw bugs of each protocol; the same again: DRAW=$draw DRAW_SEED=$draw_seed"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# build_so FOLDER PROTOCOL: of the copy in FOLDER
build_so() {
    local flags=(-std=gnu17 -O1 -g -w -fPIC -shared -ffp-contract=off -D_GNU_SOURCE -I"$1" -I"$1/include" -I"$root")
    if [ -f "$1/examples/protocol/$2.c" ]; then
        $compiler "${flags[@]}" "$1/examples/protocol/$2.c" -o "$tmp/mutant.so"
        return
    fi
    printf '%s\n' '#include "protocols/builtin.h"' 'struct trib_protocol trib_protocol;' \
        '__attribute__((constructor)) static void renamed(void)' \
        "{ trib_protocol = trib_$2; trib_protocol.name = \"mutant\"; }" >"$tmp/mutant.c"
    $compiler "${flags[@]}" "$tmp/mutant.c" "$1/protocols/$2"*.c -lm -o "$tmp/mutant.so"
}

# failing PROPERTIES: those that fail, in a line; "load": the protocol is refused
failing() {
    "$build/trib-check-protocol" "$tmp/mutant.so" --seeds "$seeds" --property "$1" >"$tmp/out" 2>&1 && return
    grep -q ' properties$' "$tmp/out" || { echo load; return; }
    awk '/ FAILED / { printf "%s ", $1 }' "$tmp/out"
}

# Whether one of the words of $1 is one of $2.
meets() {
    local w
    for w in $1; do [[ " $2 " == *" $w "* ]] && return 0; done
    return 1
}

planted=0
for i in $chosen; do
    from=$(date +%s%N) protocol=${label[i]%%,*}
    rm -rf "$tmp/tree" && mkdir "$tmp/tree" && cp -r --parents examples/protocol protocols include "$tmp/tree" || exit 2
    LINE=${old[i]} INSTEAD=${new[i]} awk '{ i = index($0, ENVIRON["LINE"]) }
        i { $0 = substr($0, 1, i - 1) ENVIRON["INSTEAD"] substr($0, i + length(ENVIRON["LINE"])) } { print }' "${file[i]}" >"$tmp/tree/${file[i]}"
    planted=$((planted + 1))
    if ! build_so "$tmp/tree" "$protocol" 2>"$tmp/log"; then
        verdict="DOES NOT BUILD: $(grep -m 1 -a error "$tmp/log")"
        missed=$((missed + 1))
    else
        asked=${by[i]// /,}
        case $asked in load | open:*) asked=all ;; esac
        found=$(failing "$asked")
        [ -n "$found" ] || [ "$asked" = all ] || found=$(failing all)
        if [[ ${by[i]} = open:* ]]; then
            verdict="${found:-not found}, ${by[i]}"
        elif [ -z "$found" ]; then
            verdict='NOT FOUND'
            missed=$((missed + 1))
        elif ! meets "${by[i]}" "$found"; then
            verdict="NOT FOUND BY ${by[i]}, but by $found"
            missed=$((missed + 1))
        else
            verdict=$found
        fi
    fi
    printf '%-10s %5.1f s  %s: %s\n' "$protocol" "$((($(date +%s%N) - from) / 1000000))e-3" "${label[i]#*: }" "$verdict"
done
echo "$planted bugs planted, $missed not found"
[ $missed = 0 ] && [ $planted -gt 0 ]
