#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# chaos_corruptions.sh [NAME]: corrupts the state of an engine on purpose, one line of tests/chaos_corruptions.txt at a time (or those with
# NAME in their file or description), in a copy of the tree with a checked build. Chaos seeds, or the room's unit tests, must stop at an
# assertion whose dump has the last events of an engine. SEEDS (default 200) limits the seeds of chaos, BUDGET (900) the seconds in
# total: corruptions not planted by then are counted, and are no failures. LIST is another file of corruptions, BUILD another checked build.
#
# A line: FILE<TAB>sed expression, which changes exactly one line<TAB>description
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD build=${BUILD:-build-checked} seeds=${SEEDS:-200} budget=${BUDGET:-900} list=${LIST:-tests/chaos_corruptions.txt} filter=${1-}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
planted=0 missed=0 left=0

[ -r "$list" ] || { echo "chaos_corruptions.sh: found no $list, expected a list of corruptions" >&2; exit 2; }
list=$(realpath "$list")
# In the tree, so that the next run and `make chaos` can reuse the objects.
make -s MODE=checked BUILD="$build" "$build/trib-sim" >&2 || exit 2
git ls-files --cached --others --exclude-standard | while read -r f; do [ ! -f "$f" ] || echo "$f"; done | tar -cf - -T - | tar -xf - -C "$copy" || exit 2
cp -a "$build" "$copy/build-checked" || exit 2
cd "$copy" || exit 2

# checked_make TARGET...: compiles only what a corruption touches; warnings about the corruption are ignored
checked_make() { make -s WARN=-w MODE=checked BUILD=build-checked "$@" >log 2>&1; }

# stopped: whether out (a run's output) has a failed assertion, followed by the events of an engine
stopped() {
    awk '/: assertion failed: / { a = 1 } a && /: the last [0-9]+ of [0-9]+ events$/ { r = 1 } r && /^ +-?[0-9]+ ps  / { e = 1 } END { exit !e }' out
}

# found FILE: prints what stopped it
found() {
    local dir=tests/${1%/*} t
    timeout 120 build-checked/trib-sim --chaos "1-$seeds" --max-wall 20 >out 2>&1
    stopped && { echo "seed $(grep -oE '^seed [0-9]+' out | tail -n 1 | cut -c6-)"; return 0; }
    grep -q ': assertion failed: ' out && cp out unnamed
    # The tests of the file's folder first, then those of the folders above it.
    while [ "$dir" != tests ]; do
        for t in "$dir"/test_*.c; do
            [ -e "$t" ] && [ $SECONDS -lt "$budget" ] || continue
            checked_make "build-checked/${t%.c}" || continue
            timeout 120 "build-checked/${t%.c}" >out 2>&1
            stopped && { echo "${t%.c}"; return 0; }
            grep -q ': assertion failed: ' out && cp out unnamed
        done
        dir=${dir%/*}
    done
    return 1
}

# plant FILE SED WHAT
plant() {
    local file=$1 what=$3 object=build-checked/${1%.c}.o by
    rm -f unnamed
    sed "$2" "$file" >corrupt || return 1
    if [ "$(diff "$file" corrupt | grep -c '^[<>]')" != 2 ]; then
        echo "$what: \"$2\" changes not exactly one line of $file" >&2
        return 1
    fi
    cp -p "$file" original
    [ ! -e "$object" ] || cp -p "$object" original.o
    cat corrupt >"$file"
    if ! checked_make build-checked/trib-sim; then
        echo "$what: does not build: $(tail -n 3 log)" >&2
        by=''
    elif by=$(found "$file"); then
        printf '%-64s stopped by %s: %s\n' "$what" "$by" "$(grep -m 1 -oE 'assertion failed: .*' out | cut -c19-110)"
    elif [ -e unnamed ]; then
        printf '%-64s STOPPED, but no engine dumped its events: %s\n' "$what" "$(grep -m 1 -oE 'assertion failed: .*' unnamed | cut -c19-110)"
    else
        printf '%-64s NOT STOPPED by %s seeds and the tests of %s\n' "$what" "$seeds" "${file%/*}"
    fi
    # The object is newer than its source again, and the archive is rebuilt with it.
    cp -p original "$file"
    if [ -e original.o ]; then
        cp original.o "$object"
    else
        touch "$file"
    fi
    rm -f original original.o
    [ -n "$by" ]
}

while IFS=$'\t' read -r file expression what <&3; do
    case $file in '' | '#'*) continue ;; esac
    [[ "$file $what" == *"$filter"* ]] || continue
    if [ $SECONDS -ge "$budget" ]; then
        left=$((left + 1))
        continue
    fi
    planted=$((planted + 1))
    plant "$file" "$expression" "$what" || missed=$((missed + 1))
done 3<"$list"
echo "corruptions: $planted planted in $SECONDS s, $missed not stopped by name; $left left when the budget was over"
[ $missed = 0 ] && [ $planted -gt 0 ]
