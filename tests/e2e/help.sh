#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What programs say of their options: --help has every option of the table, --version, the nearest name for a mistyped one, exit codes,
# manual pages that render without a warning, completion.
. "$(dirname "$0")/lib.sh"
programs='trib-perf trib-sim trib-plan trib-model trib-trace trib-switch trib-telemetry trib-status trib-metrics trib-top trib-faults trib-keep trib-enter trib-sweep trib-calibrate trib-explain trib-report trib-import trib-check-protocol trib-check-nccl-plugin trib'
program() {
    case "$1" in trib | trib-sweep | trib-calibrate | trib-explain | trib-report | trib-import) echo "$root/scripts/$1" ;; *) echo "$TRIB_BUILD/$1" ;; esac
}

for p in $programs; do
    at=$(program "$p")
    "$at" --version >"$tmp/version.out" 2>"$tmp/stderr.out" || fail "$p --version: exit code $?"
    has "^$p \\(Tributary\\) [0-9]+\\.[0-9]+\\.[0-9]+$" "$tmp/version.out"
    "$at" -h >"$tmp/h.out" 2>>"$tmp/stderr.out" || fail "$p -h: exit code $?"
    "$at" --help >"$tmp/help.out" 2>>"$tmp/stderr.out" || fail "$p --help: exit code $?"
    cmp -s "$tmp/h.out" "$tmp/help.out" || fail "$p: -h and --help differ"
    has '^[Uu]sage: trib' "$tmp/help.out"
    [ -s "$tmp/stderr.out" ] && fail "$p --help: found '$(cat "$tmp/stderr.out")' on stderr"
    [ "$(wc -L <"$tmp/help.out")" -le 150 ] || fail "$p --help: a line of $(wc -L <"$tmp/help.out") columns"
    has_not '\(null\)' "$tmp/help.out"
    [ "$p" = trib ] && continue
    "$at" --help=complete >"$tmp/complete.out" || fail "$p --help=complete: exit code $?"
    has_not '\(null\)' "$tmp/complete.out"
    n=0
    while IFS= read -r name; do
        n=$((n + 1))
        has "(^|[ ,])$name([ ,.]|\$)" "$tmp/help.out"
    done < <(cut -f1,2 "$tmp/complete.out" | tr '\t' '\n' | grep .)
    [ "$n" -ge 3 ] || fail "$p: found $n options"
    "$at" --help >/dev/full 2>"$tmp/full.out" && fail "$p --help >/dev/full: exit code 0"
done

# typo PROGRAM SAYS ARG...: exit code 2, on stderr alone
typo() {
    local at says=$2 rc
    at=$(program "$1")
    shift 2
    "$at" "$@" >"$tmp/typo.out" 2>"$tmp/stderr.out"
    rc=$?
    [ $rc = 2 ] || fail "$at $*: exit code $rc, expected 2"
    [ -s "$tmp/typo.out" ] && fail "$at $*: found '$(head -n 1 "$tmp/typo.out")' on stdout"
    has "$says" "$tmp/stderr.out"
}
typo trib-perf '^trib-perf: found --algoo, expected an option of trib-perf; did you mean --algo\?$' two-hosts.conf --algoo ring
typo trib-perf '^trib-perf: --algo: found "rign", .*; did you mean ring\?$' two-hosts.conf --algo rign
typo trib-sim 'found --sede, expected an option of trib-sim; did you mean --seed\?' two-hosts.conf --sede=1
typo trib-sim 'found --warmup_itres, .*did you mean --warmup_iters\?' two-hosts.conf --warmup_itres 1
typo trib-plan 'found -x, expected an option of trib-plan$' -x two-hosts.conf
typo trib-plan 'found no CONF, expected' -v
typo trib-model 'found --workloda, .*did you mean --workload\?' two-hosts.conf --workloda x
typo trib-switch 'found --dilaton, .*did you mean --dilation\?' two-hosts.conf --dilaton 5
typo trib-telemetry 'found no DIR, expected'
typo trib-status 'found --lnks, .*did you mean --links\?' --lnks
typo trib-keep 'COMMAND: found "lst", expected one of start, .*did you mean list\?' lst
typo trib-keep 'stop: found 0 arguments, expected 1' stop
typo trib-enter 'found no LIBRARY, expected' h0
typo trib-sweep 'found --mrege, expected an option of trib-sweep' --mrege a b
typo trib-calibrate 'found --agol, expected an option of trib-calibrate; did you mean --algo\?' two-hosts.conf x --agol ring
typo trib-check-protocol 'found --sedes, .*did you mean --seeds\?' tally --sedes 3
typo trib-check-protocol 'found "tlaly", expected a shared object \(tlaly.so\) or one of' tlaly
typo trib-check-nccl-plugin 'found --tabels, .*did you mean --tables\?' x.so --tabels all
typo trib-check-nccl-plugin 'found no FILE, expected a plug-in'
typo trib-check-nccl-plugin 'x.so: cannot open shared object file' ./x.so
typo trib-check-nccl-plugin 'found "no-such", expected names as -l lists them' ./x.so --cases no-such
typo trib "found 'mdoel', .*; did you mean model\\?" mdoel
typo trib "found 'prf', .*; did you mean perf\\?" help prf

# every command of trib has its lines
for c in $(trib --help=complete | cut -d'|' -f1); do
    trib help "$c" >"$tmp/of.out" || fail "trib help $c"
    has "^[Uu]sage: trib[ -]$c" "$tmp/of.out"
done

# an option goes by any of its names, in any place, glued to its value or not
for line in "two-hosts.conf -b 4K -e 4K --algo ring" "-b4K -e4K --algo=ring two-hosts.conf" "--minbytes=4K --maxbytes 4096 --alg ring -- two-hosts.conf"; do
    # shellcheck disable=SC2086
    (cd "$conf" && "$TRIB_BUILD/trib-sim" $line) >"$tmp/table.out" 2>/dev/null || fail "trib-sim $line"
    cmp -s "$tmp/table.out" "${first:=$tmp/first}" || [ ! -e "$first" ] || fail "trib-sim $line: another table"
    cp "$tmp/table.out" "$first"
done

# an old one works and warns
mkdir -p "$tmp/none/proc"
"$TRIB_BUILD/trib-switch" --ask "$tmp/none" /trib/ports >"$tmp/ask.out" 2>"$tmp/stderr.out" && fail "--ask without a process: exit code 0"
has '^trib-switch: --ask is deprecated and goes with the next release; use trib telemetry$' "$tmp/stderr.out"
has 'found no running process in' "$tmp/stderr.out"

trib up "$conf/leaf-spine-8-procs.conf" >/dev/null || fail "up"
trib telemetry >"$tmp/list.out" || fail "trib telemetry"
has '"/trib/ports"' "$tmp/list.out"
trib telemetry leaf0 /trib/totals >"$tmp/one.out" || fail "trib telemetry PROCESS COMMAND"
[ "$(jq -r keys[] "$tmp/one.out")" = leaf0 ] || fail "one process: $(head -n 5 "$tmp/one.out")"
trib telemetry leaf-spine-8-procs /trib/totals >"$tmp/all.out" || fail "trib telemetry CONF COMMAND"
[ "$(jq 'keys | length' "$tmp/all.out")" = 4 ] || fail "all processes: $(head -n 5 "$tmp/all.out")"
trib telemetry leaf7 /trib/totals >"$tmp/not.out" 2>&1 && fail "a process that is not there"
has "found process 'leaf7', expected one of fabric leaf-spine-8-procs: leaf0 leaf1 spine0 spine1" "$tmp/not.out"
trib telemetry /trib/nonsense >"$tmp/not.out" 2>&1 && fail "a command that is not there"
trib down >/dev/null || fail "down"

"$root/scripts/manuals.sh" "$TRIB_BUILD" >"$tmp/manuals.out" 2>&1 || fail "manuals: $(cat "$tmp/manuals.out")"

# What bash offers for the last of some words.
offers() { # offers WORD...
    bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _trib; printf "%s\n" "${COMPREPLY[@]}"' - "$TRIB_BUILD/completion/trib.bash" "$@" |
        paste -sd' '
}
PATH=$root/scripts:$PATH
completes() { # completes EXPECTED WORD...
    local want=$1 got
    shift
    got=$(cd "$tmp" && offers "$@")
    [ "$got" = "$want" ] || fail "completion of '$*': found '$got', expected '$want'"
}
completes --algo trib sim --al
completes --algo trib-sim --al
completes 'status shell sim' trib s
completes 'hier hier_sharp' trib perf --algo hie
completes 'ring,sharp' trib perf --algo ring,sh
completes 'nvls nvls_sharp nvls-hw' trib perf x --algo = nv
completes 'reduce reduce_scatter' trib sim x redu
completes 'leaf-spine-8 leaf-spine-8-procs' trib up leaf-spine-8
completes '--dilation --machine --launch --wait' trib up leaf-spine-8 --
completes 'data none' trib-sim --payload ''
completes 'llama3-405b llama3-70b' trib sim rail-2x4 --workload llama
completes 'flap' trib sim leaf-spine-8 --faults fl
completes 'two' trib-sim leaf-spine-8 --jobs tw
completes 'ring-8' trib perf leaf-spine-8 --schedule = ri
trib up leaf-spine-8-procs --dilation 50 >/dev/null || fail "no fabric of processes"
completes 'h0' trib exec leaf-spine-8-procs h0
completes 'spine0 spine1' trib node spi
completes 'leaf0-spine0 leaf0-spine1' trib link leaf0-
trib down >/dev/null || fail "down"
touch "$tmp/results.json"
completes results.json trib model x -J res
if command -v zsh >/dev/null; then zsh -n "$TRIB_BUILD/completion/_trib" || fail "completion for zsh"; fi

# skipped at the end: all else does not need it
if command -v man >/dev/null && man -l "$TRIB_BUILD/man/trib.1" >/dev/null 2>&1; then
    for f in "$TRIB_BUILD"/man/*.1; do
        said=$(LC_ALL=C.UTF-8 MANWIDTH=100 man -l --warnings=w "$f" 2>&1 >"$tmp/page.out")
        [ -z "$said" ] || fail "man ${f##*/}: $said"
        for section in NAME SYNOPSIS DESCRIPTION; do has "^$section" "$tmp/page.out"; done
    done
    LC_ALL=C.UTF-8 MANWIDTH=100 man -l "$TRIB_BUILD/man/trib-perf.1" >"$tmp/page.out"
    has '\-b, --minbytes SIZE' "$tmp/page.out"
else
    skip "no man: all else is right"
fi
