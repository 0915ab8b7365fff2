#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Things in the place of a file that a program reads: FIFOs without a writer, devices, endless files, a conf that includes another, names and values
# that a terminal obeys. Programs refuse each at once, with one line of printable characters, and read a pipe that somebody writes to.
# clock: virtual
. "$(dirname "$0")/../e2e/lib.sh"
cd "$tmp" || exit 1
mkfifo fifo
cp "$conf/two-hosts.conf" plain.conf
b=$TRIB_BUILD
sim="$b/trib-sim plain.conf -b 4K -e 4K --algo ring"
refused() { # refused WORDS COMMAND...: within a few seconds, naming these words, without a control character
    local words=$1 rc
    shift
    timeout -k 2 20 "$@" >said.out 2>&1 </dev/null
    rc=$?
    [ $rc = 1 ] || [ $rc = 2 ] || fail "found exit code $rc of $*${line:+ with $line}, expected 1 or 2: $(head -c 300 said.out)"
    has "$words" said.out
    ! LC_ALL=C grep -q "[[:cntrl:]]" said.out || fail "found control characters in what $* says: $(cat -v said.out | head -c 300)"
}

for f in fifo /dev/zero .; do
    words='expected a'
    refused "$words" "$b/trib-plan" $f
    refused "$words" "$b/trib-plan" --no-secrets $f
    refused "$words" "$b/trib-model" $f
    refused "$words|directory" "$b/trib-trace" $f
    refused "$words" "$b/trib-sim" $f
    refused "$words" "$b/trib-perf" $f
    refused "$words" "$b/trib-switch" --conf $f
    for option in faults schedule; do refused "$words" $sim --$option $f; done
    for option in workload jobs; do refused "$words" "$b/trib-sim" plain.conf --$option $f; done
    refused "$words|found" "$b/trib-sim" --chaos-case $f
done
refused 'a FIFO to which nobody writes' "$b/trib-plan" fifo

# who writes is read, slowly too
(sleep 1; cat plain.conf) | timeout 20 "$b/trib-plan" /dev/stdin >plan.out 2>&1 || fail "a pipe: $(cat plan.out)"
timeout 20 "$b/trib-plan" <(head -c 100 plain.conf; sleep 1; tail -c +101 plain.conf) >plan.out 2>&1 || fail "<(...): $(cat plan.out)"
timeout 20 "$b/trib-sim" <(cat plain.conf) -b 4K -e 4K --algo ring -J p.json >plan.out 2>&1 || fail "trib-sim <(...): $(cat plan.out)"

# a conf is one file, whatever is before the word
echo 'name = "other";' >other.conf
for before in '' ' ' $'\xef\xbb\xbf' $'\t' $'# x\n'; do
    { printf '%s@include "other.conf"\n' "$before"; grep -v '^name' plain.conf; } >include.conf
    refused 'found @include' "$b/trib-plan" include.conf
    { printf '%s@include "fifo"\n' "$before"; grep -v '^name' plain.conf; } >include.conf
    refused 'found @include' "$b/trib-plan" include.conf
done

# a terminal's control sequences
esc=$'\033]0;gone\007\033[2J'
cp plain.conf "x$esc.conf"
echo '}' >>"x$esc.conf"
refused '\\x1b\]0;gone\\x07\\x1b\[2J' "$b/trib-plan" "x$esc.conf"
refused '\\x1b' "$b/trib-plan" --no-secrets "y$esc.conf"
for line in "name = \"$esc\";" "mtu = \"$esc\";" "$esc = 1;" "unknown = \"$esc\";" "dilation = \"$(printf '\xc2\x9b')2J\";" "reduce = { protocol = \"$esc\"; slots = 8; };" \
    "nodes = ( { name = \"$esc\"; } );" "links = ( { a = \"$esc\"; b = \"h0\"; } );" "machines = ( { name = \"m\"; address = \"$esc\"; nodes = ( \"$esc\" ); } );" \
    "access = ( { user = \"$esc\"; hosts = ( \"$esc\" ); } );" "processes = ( { name = \"$esc\"; nodes = ( \"$esc\" ); } );" 'name = "\x1b[2J";' \
    'links = ( { a = "h0"; port = "\x1b[2Jx"; } );'; do
    { grep -vE '^(name|mtu|dilation|reduce)' plain.conf; printf '%s\n' "$line"; } >escape.conf
    refused 'escape.conf:[0-9]+: ' "$b/trib-plan" escape.conf
done
printf 'faults = ( { link = "%s"; down = true; } );\n' "$esc" >plan.conf
refused 'plan.conf' $sim --faults plan.conf
echo "hostile: FIFOs, devices, endless files, includes and control sequences in the place of confs are refused at once"
