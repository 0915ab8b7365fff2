#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program of a host puts links to elsewhere in its part of the run directory, isolated and not, cuts the file that the host's processes
# share, and keeps its lock. Other programs of the host and jobs go on, write nothing elsewhere, and neither trib down, nor a trib-switch
# that ends, nor a start that fails removes what the links lead to: another fabric's files, and the user's.
# load: any
. "$(dirname "$0")/../e2e/lib.sh"
cp "$conf/two-hosts.conf" "$tmp/fabric.conf"
d=$run/two-hosts
mine=$tmp/mine
mkdir -p "$mine/counters" "$mine/hw_counters"
plant() { # files that have the names of a fabric's
    for f in x.sock 0.0.lock host.token fabric.pid fabric.ready counters/port_xmit_data hw_counters/sent_pkts totals log; do echo kept >"$mine/$f"; done
}
kept() {
    for f in x.sock 0.0.lock host.token fabric.pid fabric.ready counters/port_xmit_data hw_counters/sent_pkts totals log; do
        [ "$(cat "$mine/$f" 2>/dev/null)" = kept ] || fail "$what: $f of the user's: $(ls -lR "$mine")"
    done
    [ "$(find "$mine" -type f | wc -l)" = 9 ] || fail "$what: files were made: $(find "$mine")"
}
program() { trib exec two-hosts "$1" -- ibv_devinfo >"$tmp/program.out" 2>&1; }
exact() { trib perf two-hosts -b 64K -e 64K -n 4 --algo ring -J "$tmp/perf.json" >"$tmp/perf.out" 2>&1 && jq -e '.results | length > 0 and all(.wrong == 0)' "$tmp/perf.json" >/dev/null; }
up() { trib up two-hosts --dilation 20 >"$tmp/up.out" 2>&1 || fail "up: $(cat "$tmp/up.out")"; }
command -v ibv_devinfo >/dev/null || skip "no ibv_devinfo"

# ---- the shared file of a host's counters, cut and locked while another program of the host runs ----
what="a file that was cut"
plant
up
program h0 || fail "$what: ibv_devinfo: $(cat "$tmp/program.out")"
totals=$d/port/h0/0.counters/totals
[ -f "$totals" ] || fail "$what: no $totals"
exact & job=$!
for _ in $(seq 60); do truncate -s 0 "$totals"; sleep 0.02; done
flock "$totals" sleep 3 & lock=$!
wait $job || fail "$what: the job of the host's other processes: $(cat "$tmp/perf.out")"
program h0 || fail "$what: with the lock kept: $(cat "$tmp/program.out")"
wait $lock
for p in $(pids_in "$d"/proc/*.pid); do
    ! grep -E '/port/[^/]*/' "/proc/$p/maps" || fail "$what: a process maps a file that a host's programs write to"
done

# ---- links in place of what the host's next program, and the end of the fabric, look for ----
what="links of a host's program"
trib exec two-hosts h0 -- sh -c "cd $d/port/h0 && rm -rf 0.counters 0.state && ln -s $mine 0.counters && ln -s $mine 0.state && ln -s $mine/x.sock y.sock && ln -s $mine z.counters && mkdir w.counters && ln -s $mine w.counters/hw_counters && ln -s $mine v.sock" || fail "$what"
program h0
exact || fail "$what: a job: $(cat "$tmp/perf.out")"
kept
trib down >"$tmp/down.out" 2>&1 || fail "$what: down: $(cat "$tmp/down.out")"
kept
[ ! -e "$d" ] || fail "$what: down left $(find "$d")"

what="links of an isolated program"
up
if trib exec --isolate two-hosts h0 -- true >/dev/null 2>&1; then
    trib exec --isolate two-hosts h0 -- sh -c "cd $d/port/h0 && rm -rf 0.counters 0.state && for n in 0.counters 0.state w.counters; do ln -s $mine \$n; done" || fail "$what"
    program h0
    trib exec --isolate two-hosts h0 -- ibv_devinfo >"$tmp/program.out" 2>&1
    kept
fi
# trib itself reads nothing there that is behind a link, and nothing that it would wait for.
what="in place of what trib reads"
mkfifo "$d/launch" "$d/machine" "$tmp/fifo"
timeout 60 "$root/scripts/trib" perf two-hosts -b 64K -e 64K -n 4 --algo ring >"$tmp/perf.out" 2>&1 || fail "$what: a FIFO: $(cat "$tmp/perf.out")"
has 'cannot use launch of .*two-hosts: ' "$tmp/perf.out"
rm "$d/launch" "$d/machine"
printf 'touch %s\033\n' "$mine/made" >"$tmp/launch"
ln -s "$tmp/launch" "$d/launch"
trib perf two-hosts -b 64K -e 64K -n 4 --algo ring >"$tmp/perf.out" 2>&1 || fail "$what: a link: $(cat "$tmp/perf.out")"
has 'cannot use launch of .*two-hosts: ' "$tmp/perf.out"
for f in launch ../../../launch "$tmp/launch" proc nothing; do
    ! "$TRIB_BUILD/trib-keep" show "$d" "$f" >"$tmp/show.out" 2>/dev/null || fail "$what: $f is shown"
    [ ! -s "$tmp/show.out" ] || fail "$what: of $f: $(cat "$tmp/show.out")"
done
rm "$d/launch" && install -m 600 "$tmp/launch" "$d/launch"
[ "$("$TRIB_BUILD/trib-keep" show "$d" launch)" = "touch $mine/made?" ] || fail "$what: a plain file: $("$TRIB_BUILD/trib-keep" show "$d" launch)"
rm "$d/launch"
kept
# The last trib-switch that ends removes the directory itself where its keeper is gone.
what="a trib-switch that ends alone"
ln -sfn "$mine" "$d/port/h1/0.counters" 2>/dev/null || ln -s "$mine" "$d/port/h1/9.counters"
keeper=$(pgrep -f "trib-keep start $d")
[ -z "$keeper" ] || kill -KILL $keeper
# shellcheck disable=SC2046
kill $(pids_in "$d"/proc/*.pid) 2>/dev/null
for _ in $(seq 100); do [ -e "$d/shared" ] || break; sleep 0.1; done
kept
TRIB_RUN=$d trib down >/dev/null 2>&1
kept

what="links in a directory by itself"
mkdir -p "$d/proc" "$d/link"
for l in port link dpdk machines; do rm -rf "${d:?}/$l"; ln -s "$mine" "$d/$l"; done
chmod -R go-rwx "$d"
"$TRIB_BUILD/trib-switch" --run "$d" "$conf/two-hosts.conf" >"$tmp/switch.out" 2>&1 </dev/null & switch=$!
sleep 2
kill $switch 2>/dev/null
wait $switch 2>/dev/null
kept
