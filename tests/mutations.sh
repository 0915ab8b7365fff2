#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mutations.sh: plants the bugs of TABLE (tests/mutations.txt unless set; tests/threat_model.txt removes the mechanisms of docs/threat-model.md),
# one line at a time in a copy of the tree, and expects each to be found: by chaos (SEEDS of them, 600 unless set) or by a unit test. Asked are chaos, the tests that the table names, then all of the room, until one
# finds it. A line each, and totals by room and by operator.
#   DRAW=N        only N of the table, drawn by DRAW_SEED (today's date unless set), which is printed; and KNOWN=1
#   KNOWN=1       asks the finder first that the table names first: a tenth of the time
#   ONLY=REGEXP   only those whose room, operator or name matches
#   CHECK=1       only checks that each text is there exactly once
# Fails where a text is not there any more, where nothing finds a bug, and where chaos does not find one that the table expects it to.
set -u
cd "$(dirname "$0")/.." || exit 2
root=$PWD build=${BUILD:-build-checked} seeds=${SEEDS:-600} draw=${DRAW:-0} draw_seed=${DRAW_SEED:-$(date +%Y%m%d)}
table=${TABLE:-tests/mutations.txt}
[ "$draw" = 0 ] || KNOWN=1
only=${ONLY:-.} compiler=${CC:-gcc}
command -v ccache >/dev/null && case $compiler in ccache*) ;; *) compiler="ccache $compiler" ;; esac
for n in "$seeds" "$draw" "$draw_seed"; do
    [[ $n =~ ^[0-9]+$ ]] || { echo "mutations.sh: found \"$n\", expected a whole number" >&2; exit 2; }
done

# ---- the table ----
. tests/mutations_table.sh

chosen=$(for ((i = 0; i < n; i++)); do
    [ "$draw" -gt 0 ] && [[ ${by[i]} = open:* ]] && continue
    [[ ${label[i]} =~ $only ]] && echo "$i"
done)
if [ "$draw" -gt 0 ]; then
    chosen=$(awk -v seed="$draw_seed" -v n="$draw" 'BEGIN { srand(seed) } { a[NR] = $0 }
        END { for (i = 1; i <= n && i <= NR; i++) { k = i + int(rand() * (NR - i + 1)); t = a[i]; a[i] = a[k]; a[k] = t; print a[i] } }' \
        <<<"$chosen" | sort -n)
    echo "# $draw of $n bugs; the same again: DRAW=$draw DRAW_SEED=$draw_seed"
fi

# ---- a copy of the tree and of what is built of it ----
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files --cached --others --exclude-standard | while read -r f; do [ ! -f "$f" ] || echo "$f"; done | tar -cf - -T - | tar -xf - -C "$copy" || exit 2
mkdir "$copy/$build" && (cd "$build" && find . \( -name '*.[oad]' -o -name flags -o -name commit -o -name trib-sim -o -path './images/*' \) -print |
    tar -cf - --no-recursion -T -) | tar -xf - -C "$copy/$build" || exit 2
cd "$copy" || exit 2
build_it() { make -s WARN=-w CC="$compiler" MODE=checked BUILD="$build" "$@" >log 2>&1; }
build_it "$build/trib-sim" || { tail -n 3 log >&2; exit 2; }

# Each prints what it has found; nothing: it has found nothing.
by_chaos() {
    local pid line=''
    build_it "$build/trib-sim" || { echo "DOES NOT BUILD: $(grep -m 1 -a error log)"; return; }
    "$build/trib-sim" --chaos "1-$seeds" --max-wall 20 >out 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! line=$(grep -a -m 1 FAILED out); do sleep 0.1; done
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
    line=${line:-$(grep -a -m 1 FAILED out)}
    if [ -z "$line" ] && ! tail -n 1 out | grep -aq ' seeds, '; then # an assertion, or worse
        line="$(grep -aE '^seed' out | tail -n 1 | cut -d: -f1): FAILED: $(grep -aiE 'assert' out | tail -n 1)"
    fi
    [ -z "$line" ] || echo "seed $(grep -oE 'seed [0-9]+' <<<"$line" | tail -n 1 | cut -c6-), ${line##*FAILED: }"
}

by_test() {
    [ -f "tests/$1.c" ] || { echo "mutations.sh: found no tests/$1.c" >&2; return; }
    build_it "$build/tests/$1" || { echo "DOES NOT BUILD: $(grep -m 1 -a error log)"; return; }
    timeout 120 "$build/tests/$1" >out 2>&1 && return
    echo "$1, $(grep -a -m 1 -E '^\[  FAILED  \] [a-z]' out | sed 's/^\[  FAILED  \] //')"
}

# ask FINDER: sets found_by and found
ask() {
    [ -z "$found_by" ] || return
    if [ "$1" = chaos ]; then found=$(by_chaos); else found=$(by_test "$1"); fi
    [ -z "$found" ] || found_by=$1
}

others() {
    local room=${label[$1]%%,*} t
    for t in tests/"$room"/test_*.c; do
        [ ! -f "$t" ] || { t=${t#tests/}; echo "${t%.c}"; }
    done
}

declare -A total by_chaos_n by_test_n
count() { eval "$1[\$2]=\$((\${$1[\$2]-0} + 1))"; }

for i in $chosen; do
    from=$(date +%s%N) found='' found_by='' room=${label[i]%%,*} op=${label[i]#*, } name=${label[i]#*: }
    op=${op%%:*}
    LINE=${old[i]} INSTEAD=${new[i]} awk '{ i = index($0, ENVIRON["LINE"]) }
        i { $0 = substr($0, 1, i - 1) ENVIRON["INSTEAD"] substr($0, i + length(ENVIRON["LINE"])) } { print }' "${file[i]}" >mutant
    cat mutant >"${file[i]}"
    first=chaos
    named=${by[i]}
    case $named in open:*) named='' ;; esac
    [ -z "${KNOWN-}" ] || first=${named%% *}
    for who in $first $named chaos $([ -n "${KNOWN-}" ] || others "$i"); do
        [ "$who" = "${asked-}" ] || ask "$who"
        asked=$who
    done
    asked=''
    case $found in
    'DOES NOT BUILD'*)
        verdict=$found found_by=''
        missed=$((missed + 1))
        ;;
    *)
        if [ -z "$found_by$named" ]; then
            verdict="not found, ${by[i]}"
        elif [ -z "$found_by" ]; then
            verdict='NOT FOUND'
            missed=$((missed + 1))
        elif [ "${by[i]%% *}" = chaos ] && [ "$found_by" != chaos ]; then
            verdict="NOT FOUND BY CHAOS, by $found"
            missed=$((missed + 1))
        else
            verdict=$([ "$found_by" = chaos ] && echo "chaos, $found" || echo "$found")
        fi
        ;;
    esac
    for key in "$room" "$op" all; do
        count total "$key"
        [ "$found_by" != chaos ] || count by_chaos_n "$key"
        [ -z "$found_by" ] || [ "$found_by" = chaos ] || count by_test_n "$key"
    done
    printf '%-20s %-15s %5.1f s  %s: %s\n' "$room" "$op" "$((($(date +%s%N) - from) / 1000000))e-3" "$name" "$(cut -c1-120 <<<"$verdict" | head -n 1)"
    cp "$root/${file[i]}" "${file[i]}"
done

printf '#\n# %-20s %7s %6s %6s %5s\n' '' planted chaos tests none
for key in $(printf '%s\n' "${!total[@]}" | grep / | sort) $(printf '%s\n' "${!total[@]}" | grep -vE '/| |^comparison$|^all$' | sort) \
    comparison off_by_one missing_release wrong_order missing_check all; do
    key=${key//_/ }
    [ -n "${total[$key]-}" ] || continue
    c=${by_chaos_n[$key]-0} t=${by_test_n[$key]-0}
    printf '# %-20s %7d %6d %6d %5d\n' "$key" "${total[$key]}" "$c" "$t" "$((${total[$key]} - c - t))"
done
[ $missed = 0 ]
