#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Another user plants links under the names that the victim's writers could be expected to use, in a directory of both: trib report, confs and
# sweeps of the Python package, trib-sweep, trib up --launch. The victim's file keeps its bytes, and so does each link. What is replaced
# keeps its permissions, and what cannot be written leaves nothing.
# load: any
. "$(dirname "$0")/../e2e/lib.sh"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip "not root: no other users"
python=/usr/bin/python3
$python -c 'import pandas, matplotlib, libconf' 2>/dev/null || skip "no pandas, matplotlib or libconf for $python (scripts/setup.sh python)"
victim=65531 attacker=65532
. "$(dirname "$0")/lib_users.sh"
mkdir "$w/b" "$w/own"
mkdir -m 777 "$w/both"
install_in "$w/b"
cp -r "$root/python" "$w/"
chown $victim:$victim "$w/own"
precious=$w/own/precious
export MPLCONFIGDIR=$w/own/mpl PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$w/python TRIB_BUILD=$w/b
as() { (cd "$w/both" && exec setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"); }
kept() { [ "$(cat "$precious")" = kept ] || fail "$what: the victim's file was written to: $(head -c 200 "$precious")"; }

# attacked NAME... -- CMD...: the attacker knows CMD's pid before it runs, and plants .NAME.PID, and NAME.PID with the suffixes of temporary files.
attacked() {
    local names=() pid n s rc
    while [ "$1" != -- ]; do names+=("$1"); shift; done
    shift
    echo kept >"$precious"
    chown $victim:$victim "$precious"
    (cd "$w/both" && exec setpriv --reuid $victim --regid $victim --clear-groups bash -c 'kill -STOP $$; exec "$@"' - "$@") >"$tmp/v.out" 2>&1 </dev/null &
    pid=$!
    until [[ "$(cut -d' ' -f3 /proc/$pid/stat)" = T ]]; do sleep 0.01; done
    for n in "${names[@]}"; do
        for s in ".$n.$pid" "$n.$pid" ".$n.$pid.tmp" "$n.$pid.tmp" "$n.tmp" "$n.new" ".$n.new" ".$n"; do as $attacker ln -s "$precious" "$s"; done
    done
    kill -CONT $pid
    wait $pid
    rc=$?
    kept
    for n in "${names[@]}"; do
        for s in ".$n.$pid" "$n.$pid"; do [ -L "$w/both/$s" ] || fail "$what: took the link $s away: $(ls -lA "$w/both")"; done
    done
    [ $rc = 0 ] || fail "$what: $(cat "$tmp/v.out")"
}
reset() { rm -rf "$w"/both/{*,.[!.]*}; }
left() { find "$w/both" -name '*.tmp' -type f; }

as $victim "$w/b/trib-sim" "$w/conf/two-hosts.conf" -b 4K -e 4K --algo ring -J "$w/own/a.json" >/dev/null 2>&1 || fail "trib-sim"
what="trib report"
attacked report.html -- "$w/scripts/trib" report "$w/own/a.json"
[ -s "$w/both/report.html" ] && [ ! -L "$w/both/report.html" ] || fail "$what: no page"
what="a conf of the Python package"
attacked made.conf -- $python -c 'import tributary; tributary.Conf.load("two-hosts").write("made.conf")'
cmp -s <(grep -c . "$w/both/made.conf") /dev/null && fail "$what: no conf"
what="a sweep of the Python package"
attacked list -- $python -c 'import tributary; tributary.sweep("two-hosts", dir="sweep", sizes=["4K"], algos=["ring"])'
reset
what="its list"
as $victim mkdir -m 777 "$w/both/sweep"
as $attacker perl -e 'for my $n (".list", ".labels", ".two-hosts.conf") { symlink $ARGV[0], "sweep/$n.$_" for $ARGV[1] .. $ARGV[1] + 4000 }' "$precious" $$
as $victim $python -c 'import tributary; tributary.sweep(tributary.Conf.load("two-hosts"), dir="sweep", sizes=["4K"], algos=["ring"], faults={"a": [dict(link="all", loss=0.0)]})' >"$tmp/v.out" 2>&1 || fail "$what: $(cat "$tmp/v.out")"
kept

# trib-sweep: links under each name that it writes, in a DIR that is there.
reset
what="trib-sweep --vary"
as $victim mkdir -m 777 "$w/both/vary"
for s in .0.conf keys list 00000.out 00000.err 00000.json '.0,host_link.rate=100Gb_s.conf' '.0,host_link.rate=100Gb_s.conf.new' 'two-hosts,host_link.rate=100Gb_s.conf'; do
    as $attacker ln -s "$precious" "vary/$s"
done
as $victim "$w/scripts/trib-sweep" --vary rate=100Gb/s vary "$w/conf/two-hosts.conf" all_reduce --algo ring -b 4K -e 4K >"$tmp/v.out" 2>&1 || fail "$what: $(cat "$tmp/v.out")"
kept
[ -s "$w/both/vary/00000.json" ] && [ -z "$(find "$w/both/vary" -name '.vary*' -o -name '.sweep*')" ] || fail "$what: $(ls -lA "$w/both/vary")"

# ---- permissions, and what cannot be written ----
reset
what="a file that is replaced"
as $victim bash -c 'umask 022; echo old >mine; chmod 640 mine; touch new'
as $victim $python -c 'from tributary._files import write_whole; write_whole("mine", "more"); write_whole("fresh", "x"); write_whole("key", "x", 0o600)'
[ "$(stat -c %a "$w/both/mine" "$w/both/fresh" "$w/both/key" | xargs)" = "640 644 600" ] || fail "$what: permissions $(stat -c '%n %a' "$w"/both/*)"
as $victim "$w/b/trib-sim" "$w/conf/two-hosts.conf" -b 4K -e 4K --algo ring -J mine >/dev/null 2>&1 || fail "$what: trib-sim"
[ "$(stat -c %a "$w/both/mine")" = 640 ] || fail "$what: trib-sim gives permissions $(stat -c %a "$w/both/mine")"
what="a file that cannot be written"
as $victim bash -c 'ulimit -f 1; exec "$@"' - $python -c 'from tributary._files import write_whole
try:
    write_whole("mine", "x" * 100000)
except OSError as e:
    assert e.filename == "mine", e
else:
    raise SystemExit("was written")' >"$tmp/v.out" 2>&1 || fail "$what: $(cat "$tmp/v.out")"
[ -z "$(left)" ] && [ "$(head -c 1 "$w/both/mine")" = "{" ] || fail "$what: $(ls -lA "$w/both")"
what="a directory, /dev/stdout and another user's FIFO"
as $victim mkdir "$w/both/dir"
as $attacker mkfifo -m 666 "$w/both/fifo"
as $victim $python -c 'from tributary._files import write_whole
for name in "dir", "fifo", "none/x":
    try:
        write_whole(name, "x")
    except OSError as e:
        assert e.filename == name, e
    else:
        raise SystemExit(name)
open("../own/said", "w").close()' >"$tmp/v.out" 2>&1 || fail "$what: $(cat "$tmp/v.out")"
as $victim bash -c 'exec "$@" >../own/said' - $python -c 'from tributary._files import write_whole; write_whole("/dev/stdout", "printed\n")' 2>"$tmp/v.out"
[ "$(cat "$w/own/said")" = printed ] && [ -z "$(left)" ] || fail "$what: $(cat "$tmp/v.out")"
