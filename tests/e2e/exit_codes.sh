#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job that a signal ends has exit code 128 and the signal's number, whoever got it: trib, the program that does the work, or both, as a
# terminal, timeout(1) and a batch system send it; trib perf also while it starts, and with ranks on another machine.
# load: any
. "$(dirname "$0")/lib.sh"
name=two-hosts

ends() { # ends WHAT SIGNAL CODE whole|one READY-COMMAND CMD...: the signal to CMD's process group, or to CMD alone
    local what=$1 sig=$2 code=$3 to=$4 ready=$5 pid rc
    shift 5
    : >"$tmp/job.out"
    env --default-signal=INT setsid "$@" >>"$tmp/job.out" 2>&1 </dev/null &
    pid=$!
    until_true 30 leads || fail "$what: no process group of its own"
    until_true 30 "$ready" || fail "$what: not under way: $(cat "$tmp/job.out")"
    if [ "$to" = whole ]; then kill "-$sig" -- "-$pid"; else kill "-$sig" $pid; fi
    wait $pid
    rc=$?
    [ $rc = "$code" ] || fail "$what: SIG$sig ($to): exit code $rc, expected $code: $(cat "$tmp/job.out")"
}
leads() { local group; read -r _ _ _ _ group _ <"/proc/$pid/stat" 2>/dev/null && [ "$group" = $pid ]; } # setsid has been, and so has env's SIGINT
rows() { grep -qE '^ +[0-9]+ ' "$tmp/job.out"; }
frames() { [ "$(total rx_frames 2>/dev/null)" -gt 200 ]; }
begun() { [ -s "$tmp/job.out" ]; }
soon() { sleep 0.$((RANDOM % 10)); }

trib up $name --dilation 1000 >/dev/null || fail "no fabric"
for sig in INT:130 TERM:143 HUP:129; do
    for to in one whole; do
        ends "trib perf" ${sig%:*} ${sig#*:} $to begun "$root/scripts/trib" perf $name --algo ring -b 64K -e 64K -n 1000000 --max-wall 60
        ends "trib perf as it starts" ${sig%:*} ${sig#*:} $to soon "$root/scripts/trib" perf $name --algo ring -b 64K -e 64K -n 1000000 --max-wall 60
        ends "trib exec" ${sig%:*} ${sig#*:} $to begun "$root/scripts/trib" exec $name h0 -- sh -c 'echo up; sleep 30'
        if trib exec --isolate $name h0 -- true 2>/dev/null; then
            ends "trib exec --isolate" ${sig%:*} ${sig#*:} $to begun "$root/scripts/trib" exec --isolate $name h0 -- sh -c 'echo up; sleep 30 & wait'
        fi
    done
done
for sig in INT:130 TERM:143; do
    ends "trib sim" ${sig%:*} ${sig#*:} one begun "$root/scripts/trib" sim leaf-spine-8 --algo ring -b 64M -e 64M -n 100000
    ends "trib sim --jobs" ${sig%:*} ${sig#*:} whole soon "$root/scripts/trib" sim leaf-spine-8 --algo ring -b 64M -e 64M -n 100000
done

# a signal that comes before the program of trib perf has begun
mkdir "$tmp/slow"
ln -s "$TRIB_BUILD"/* "$tmp/slow"
rm "$tmp/slow/trib-keep"
printf '#!/bin/sh\n[ "$1" != with ] || { echo begins; sleep 1; }\nexec %s/trib-keep "$@"\n' "$TRIB_BUILD" >"$tmp/slow/trib-keep"
chmod +x "$tmp/slow/trib-keep"
for sig in INT:130 TERM:143 HUP:129; do
    TRIB_BUILD=$tmp/slow ends "trib perf before it starts" ${sig%:*} ${sig#*:} one begun "$root/scripts/trib" perf $name --algo ring -b 64K -e 64K -n 1000000 --max-wall 5
done
trib down >/dev/null || fail "down"

# a fabric that was started for the job
ends "trib perf with a fabric of its own" TERM 143 whole begun "$root/scripts/trib" perf single-switch-4 --algo ring -b 64K -e 64K -n 1000000 --max-wall 60
no_fabric() { [ -z "$(ls "$run" 2>/dev/null)" ]; }
until_true 10 no_fabric || fail "left: $(ls "$run")"

# ranks on another machine: a second run directory of this one, by a launcher that finds it there
mkdir -m 700 "$tmp/there"
left_there() {
    local rc=$?
    TRIB_RUN="$tmp/there/tributary-$(id -u)/spread" trib down >/dev/null 2>&1
    (exit $rc)
    finish
}
trap left_there EXIT
printf '#!/bin/sh\nshift\nXDG_RUNTIME_DIR=%s exec "$@"\n' "$tmp/there" >"$tmp/launcher"
chmod +x "$tmp/launcher"
sed 's/^name .*/name = "spread";/' "$conf/leaf-spine-8.conf" >"$tmp/spread.conf"
cat >>"$tmp/spread.conf" <<END
machines = ( { name = "m0"; address = "127.0.0.1"; port = $port; nodes = ( "leaf0", "spine0" ); },
             { name = "m1"; address = "127.0.0.2"; port = $port; nodes = ( "leaf1", "spine1" ); } );
trunk_key = "a secret that the lab shares";
END
chmod 600 "$tmp/spread.conf"
trib up "$tmp/spread.conf" --dilation 20000 --launch "$tmp/launcher" >"$tmp/up.out" 2>&1 || fail "machines: $(cat "$tmp/up.out")"
for sig in INT:130 TERM:143 HUP:129; do
    for to in one whole; do
        ends "trib perf over machines" ${sig%:*} ${sig#*:} $to begun "$root/scripts/trib" perf "$tmp/spread.conf" --algo ring -b 64K -e 64K -n 100000 --max-wall 60
    done
done
trib down --machines >/dev/null || fail "down --machines"
