#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `make install` with DESTDIR and PREFIX: what is installed finds its programs, library and confs from any directory, by the paths that
# confs have in a checkout and by bare names.
. "$(dirname "$0")/lib.sh"
command -v make >/dev/null || skip "no make"

# "all" is what is tested already, in whatever build
make -C "$root" --no-print-directory -s -o all install BUILD="$TRIB_BUILD" DESTDIR="$tmp/d e" PREFIX=/opt/t >"$tmp/install.out" 2>&1 ||
    fail "make install: $(tail -n 5 "$tmp/install.out")"
prefix="$tmp/d e/opt/t"
unset TRIB_BUILD
installed() { (cd / && "$prefix/bin/trib" "$@"); }
for c in conf/leaf-spine-8.conf leaf-spine-8.conf leaf-spine-8 ./conf/leaf-spine-8.conf; do
    installed plan "$c" >"$tmp/plan.out" 2>&1 || fail "plan $c: $(tail -n 2 "$tmp/plan.out")"
    has spine1 "$tmp/plan.out"
done
installed plan nowhere >"$tmp/none.out" 2>&1 && fail "plan of a conf that is not there"
has "found no conf file 'nowhere'" "$tmp/none.out"
for c in two-hosts conf/two-hosts.conf; do
    installed model $c >"$tmp/model.out" 2>&1 || fail "model $c: $(tail -n 2 "$tmp/model.out")"
    installed sim $c -b 4K -e 4K >"$tmp/sim.out" 2>&1 || fail "sim $c: $(tail -n 2 "$tmp/sim.out")"
done
for f in flap conf/faults/flap.conf faults/flap.conf; do
    installed sim leaf-spine-8 -b 4K -e 4K --faults $f >"$tmp/sim.out" 2>&1 || fail "sim --faults $f: $(tail -n 2 "$tmp/sim.out")"
done
for j in two conf/jobs/two.conf; do
    installed sim leaf-spine-8 --jobs $j >"$tmp/sim.out" 2>&1 || fail "sim --jobs $j: $(tail -n 2 "$tmp/sim.out")"
done
for w in llama3-70b conf/workloads/llama3-70b.conf; do
    installed model h100-superpod-4096 --workload $w >"$tmp/model.out" 2>&1 || fail "model --workload $w: $(tail -n 2 "$tmp/model.out")"
done
installed perf two-hosts -b 4K -e 4K -n 2 -w 0 --max-wall 5 >"$tmp/perf.out" 2>&1 || fail "perf: $(tail -n 3 "$tmp/perf.out")"
has 'values : 0 OK' "$tmp/perf.out"
installed up conf/two-hosts.conf >/dev/null || fail "up"
installed exec two-hosts h0 -- ibv_devices >"$tmp/exec.out" 2>&1 || fail "exec"
has trib0 "$tmp/exec.out"
installed status two-hosts >"$tmp/status.out" 2>&1 || fail "status: $(tail -n 3 "$tmp/status.out")"
has two-hosts "$tmp/status.out"
installed top two-hosts --batch -n 1 >"$tmp/top.out" 2>&1 || fail "top: $(tail -n 3 "$tmp/top.out")"
installed link two-hosts h0-switch0 down >"$tmp/link.out" 2>&1 || fail "link: $(tail -n 3 "$tmp/link.out")"
installed down two-hosts >/dev/null || fail "down"
# Users call what is in bin by name; of what trib alone calls nothing is there.
for p in enter keep telemetry status metrics top faults capture machines; do
    [ -x "$prefix/libexec/tributary/trib-$p" ] && [ ! -e "$prefix/bin/trib-$p" ] || fail "trib-$p is not in libexec alone"
done
[ ! -e "$run" ] || fail "left $run"

# A protocol is built in a folder of its own against what is installed: pkg-config alone says where. It gives paths with blanks with
# a backslash, which a Makefile does not read; hence the link.
command -v pkg-config >/dev/null || skip "no pkg-config"
ln -s "$prefix" "$tmp/prefix"
export PKG_CONFIG_PATH=$tmp/prefix/lib/pkgconfig
[ "$(pkg-config --modversion tributary)" = "$(installed --version | sed 's/.* //')" ] || fail "pkg-config: version $(pkg-config --modversion tributary)"
cp -r "$prefix/share/tributary/examples/protocol" "$tmp/mine"
make -s -C "$tmp/mine" CFLAGS='-O2 -Wall -Wextra -Werror' >"$tmp/make.out" 2>&1 || fail "make of the example: $(cat "$tmp/make.out")"
(cd "$tmp/mine" && "$prefix/bin/trib" check-protocol tally.so --quick) >"$tmp/check.out" 2>&1 || fail "check-protocol: exit code $?"
has '^tally: 12 of 12 properties$' "$tmp/check.out"
installed check-protocol "$tmp/mine/template.so" >"$tmp/template.out" 2>&1
[ $? = 1 ] || fail "the template is not refused"
has 'protocol "TODO": its name is not 1 to 15 characters' "$tmp/template.out"

# Uninstalled: nothing is left but what somebody else put there.
touch "$prefix/share/tributary/conf/mine.conf"
uninstall() { make -C "$root" --no-print-directory -s uninstall DESTDIR="$tmp/d e" PREFIX=/opt/t >"$tmp/uninstall.out" 2>&1 || fail "make uninstall: $(cat "$tmp/uninstall.out")"; }
uninstall
[ "$(find "$tmp/d e" -type f)" = "$prefix/share/tributary/conf/mine.conf" ] || fail "left $(find "$tmp/d e" -type f | head -n 5)"
rm "$prefix/share/tributary/conf/mine.conf"
uninstall
[ ! -e "$prefix" ] || fail "left folders: $(find "$prefix" -type d)"
