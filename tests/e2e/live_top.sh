#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib top on a terminal (tests/tools/terminal.py): links, groups and processes of a fabric while a job runs, keys, another size of the
# window, a fabric that goes down under it; plain lines where there is no terminal.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3

# no terminal: plain lines
trib top -n 1 >"$tmp/none.out" 2>&1 && fail "no fabric: exit code 0"
has '^no fabric is up$' "$tmp/none.out"
trib up "$conf/leaf-spine-8.conf" --dilation 100 >"$tmp/up.out" || fail "no fabric"
trib link h3-leaf0 down >/dev/null || fail "link"
trib top -n 2 -d 0.2 --sort name >"$tmp/batch.out" 2>&1 || fail "batch"
[ "$(grep -c '^leaf-spine-8: dilation 100' "$tmp/batch.out")" = 2 ] || fail "two looks: $(cat "$tmp/batch.out")"
[ "$(grep -c '^h[0-7]  *leaf[01] ' "$tmp/batch.out")" = 16 ] || fail "links: $(cat "$tmp/batch.out")"
has '^h3 +leaf0 .* down' "$tmp/batch.out"
has '^links 12, down 1; ' "$tmp/batch.out"
trib link h3-leaf0 up >/dev/null || fail "link"
trib top --sort nothing >"$tmp/bad.out" 2>&1 && fail "--sort nothing: exit code 0"
has 'expected used, queue, pauses, drops or name|expected one of' "$tmp/bad.out"

$python -c 'import pyte' 2>/dev/null || skip "plain lines only: no pyte for $python (scripts/setup.sh test)"
terminal() { # terminal STEP... : on trib top
    TERM=${term:-xterm-256color} timeout 100 $python "$root/tests/tools/terminal.py" "$tmp" "$@" -- "$TRIB_BUILD/trib-top" -d 0.3 "$run/leaf-spine-8" >"$tmp/terminal.out" 2>&1
}
trib perf "$conf/leaf-spine-8.conf" all_reduce -b 64K -e 64K -n 100000 --algo sharp --max-wall 60 >"$tmp/perf.out" 2>&1 &
perf=$!
terminal until='[##' show=links size=16x60 wait=0.5 show=narrow size=40x140 wait=0.5 type=g wait=0.5 show=groups type=p wait=0.5 show=processes \
    type=h wait=0.4 show=help type=h type=l type=s wait=0.5 show=queue type=' ' wait=0.4 show=held type=q || fail "exit code $?: $(cat "$tmp/terminal.out")"
has '^leaf-spine-8: dilation 100, fabric time [0-9.]+ s' "$tmp/links"
has '^(h[0-7]|leaf[01]|spine[01]) +(h[0-7]|leaf[01]|spine[01]) +[0-9.]+ +[0-9]+% \[#' "$tmp/links"
has '^links by used, 1 to [0-9]+ of 24; every 0.3 s; fabric 1 of 1; h: help, q: end' "$tmp/links"
[ "$(wc -l <"$tmp/links")" = 24 ] && [ "$(wc -l <"$tmp/narrow")" = 16 ] && [ "$(wc -L <"$tmp/narrow")" -le 60 ] || fail "sizes"
has '^links by used, 1 to 12 of 24;' "$tmp/narrow"
has '^[0-9a-f]{8} tree +[01] +[0-9]+ h[0-7] +(open|busy) +8 of 8 ' "$tmp/groups"
has '^h3 +[0-9]+ trib-perf +connected' "$tmp/processes"
has '^s +next order of links' "$tmp/help"
has '^links by queue, ' "$tmp/queue"
has 'every 0.3 s, held;' "$tmp/held"
kill $perf 2>/dev/null
wait $perf 2>/dev/null

# a terminal that nobody knows; a fabric that goes down meanwhile
term=nosuch terminal && fail "TERM=nosuch: exit code 0"
(sleep 1.5; trib down >/dev/null) &
terminal until='24; every' wait=2 until='no fabric' show=gone type=q || fail "exit code $?"
wait $!
has '^no fabric is up' "$tmp/gone"
