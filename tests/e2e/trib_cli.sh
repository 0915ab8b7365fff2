#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The trib command: up, a second up, status, exec, several fabrics side by side, down that leaves nothing; and what it refuses.
. "$(dirname "$0")/lib.sh"

refuses() { # refuses CODE TEXT ARG...
    local code=$1 text=$2
    shift 2
    trib "$@" >"$tmp/refuse.out" 2>&1
    local rc=$?
    [ $rc = "$code" ] || fail "trib $*: exit code $rc, expected $code"
    has "$text" "$tmp/refuse.out"
}

refuses 1 'no fabric is up' status
refuses 1 'no fabric is up' down
refuses 1 'no fabric is up' perf -b 4K
refuses 2 "found 'fly'" fly
refuses 1 'no conf file' up nowhere.conf
refuses 1 "found --dilation 'fast'" up "$conf/two-hosts.conf" --dilation fast
refuses 2 '-b: found "4Q", expected a size' perf "$conf/two-hosts.conf" -b 4Q
refuses 2 '-g: found 999' perf "$conf/two-hosts.conf" -g 999
refuses 2 '-J: cannot write /nonexistent/x: No such' perf "$conf/two-hosts.conf" -J /nonexistent/x
refuses 2 '-J: cannot write /nonexistent/x: No such' sim two-hosts.conf -J /nonexistent/x
refuses 2 'found [0-9]+ MiB of memory \([^)]*\), expected about 4[0-9]{6} for the buffers and [0-9]+ connections of 2 ranks' perf "$conf/two-hosts.conf" -b 1T -e 1T
refuses 2 '-b: found 3, expected at least 4 bytes' perf "$conf/two-hosts.conf" -b 3 -e 3
refuses 2 'COLLECTIVE: found "all_gatherx", expected one of all_reduce' perf "$conf/two-hosts.conf" all_gatherx
refuses 0 'maxbytes' perf -h
refuses 0 'trib up CONF' up --help
refuses 0 '@rank' exec -h
refuses 0 '^trib \(Tributary\) [0-9.]+$' --version
refuses 2 'did you mean status\?' sttaus
refuses 2 'did you mean capture\?' help captur
refuses 0 'trib link \[CONF\]' help link
refuses 0 'LIST.* all that can do it' help perf
refuses 1 "found the directory '.*conf'" plan "$conf"
echo 'name = 7;' >"$tmp/bad.conf"
refuses 1 'bad.conf:' up "$tmp/bad.conf"
[ -e "$run" ] && fail "refusals left $run"

# what TRIB_RUN names is somebody's, unless it is empty or a fabric's
mkdir -p "$tmp/mine/proc"
echo kept | tee "$tmp/mine/file" "$tmp/mine/proc/file" >/dev/null
export TRIB_RUN=$tmp/mine
refuses 1 "are no fabric's" up "$conf/two-hosts.conf"
refuses 1 "are no fabric's" perf "$conf/two-hosts.conf" -b 4K -e 4K
refuses 1 'found no fabric in' down
grep -qs kept "$tmp/mine/file" && grep -qs kept "$tmp/mine/proc/file" || fail "files in TRIB_RUN are gone"
TRIB_RUN=new/
(cd "$tmp" && trib up "$conf/two-hosts.conf" --dilation 10) >"$tmp/up.out" || fail "up in TRIB_RUN"
has 'fabric new is up' "$tmp/up.out"
(cd "$tmp" && trib exec h0 -- sh -c 'cd / && ibv_devices') 2>&1 | grep -q trib0 || fail "a relative TRIB_RUN holds for one directory only"
(cd "$tmp" && trib down) >/dev/null || fail "down in TRIB_RUN"
[ -e "$tmp/new" ] && fail "down left TRIB_RUN"
unset TRIB_RUN

trib plan "$conf/leaf-spine-8.conf" >"$tmp/plan.out" || fail "plan"
has 'spine1' "$tmp/plan.out"
# many nodes: a line for all that are alike, unless asked for each
trib plan "$conf/h100-superpod-1024.conf" >"$tmp/plan.out" || fail "plan of 1,024 GPUs"
has '^  nvswitch +128 +512 ' "$tmp/plan.out"
has_not 'n3g0' "$tmp/plan.out"
trib plan "$conf/h100-superpod-1024.conf" -v | cmp -s - <(trib plan -v "$conf/h100-superpod-1024.conf") || fail "plan CONF -v"
trib plan -v "$conf/h100-superpod-1024.conf" >"$tmp/plan.out" || fail "plan -v"
has '^  n3g0 +host +4 of 5' "$tmp/plan.out"
[ -e "$run" ] && fail "plan started something"

# tables and results that did not get out whole are no success
for what in "plan two-hosts.conf" "model two-hosts.conf" "sim two-hosts.conf -b 4K -e 4K" "perf two-hosts.conf -b 4K -e 4K -n 2 --max-wall 5"; do
    # shellcheck disable=SC2086
    trib $what >/dev/full 2>"$tmp/full.out" && fail "trib $what >/dev/full: exit code 0"
    has 'cannot write to standard output' "$tmp/full.out"
done
refuses 1 'cannot write /dev/full: No space' sim two-hosts.conf -b 4K -e 4K -J /dev/full
[ -c /dev/full ] || fail "/dev/full was replaced"
(ulimit -f 100 && refuses 1 'cannot share memory in .*: File too large' up "$conf/two-hosts.conf") || fail "a limit on the size of files is not told"
[ -e "$run" ] && fail "they left $run"

trib up "$conf/two-hosts.conf" --dilation 123 >"$tmp/up.out" || fail "up"
refuses 1 'is up already' up "$conf/two-hosts.conf"
sed 's/300ns/900ns/' "$conf/two-hosts.conf" >"$tmp/other.conf"
refuses 1 'started from another conf' perf "$tmp/other.conf" -b 4K -e 4K
refuses 1 'expected: trib down' down "$conf/two-hosts.conf" more
trib status >"$tmp/status.out" || fail "status"
has 'fabric two-hosts: .*dilation 123' "$tmp/status.out"
# who is woken interrupts who runs, for the least lateness; at line speed it waits, for the longest bursts
policy() { chrt -p "$(pids_in "$run/$1"/proc/*.pid)" | sed -n 's/.*policy: //p'; }
[ "$(policy two-hosts)" = SCHED_OTHER ] || fail "found policy $(policy two-hosts) at dilation 123, expected SCHED_OTHER"
trib exec h1 -- ibv_devinfo >"$tmp/devinfo.out" 2>&1 || fail "ibv_devinfo"
has 'trib0' "$tmp/devinfo.out"
has '123 times slower' "$tmp/devinfo.out"
trib exec h1 -- bash -c 'exit 7' 2>/dev/null
[ $? = 7 ] || fail "exec must pass the exit code on"
perf_ok fixed -b 4K -e 4K -n 2
has ' 123 ' "$tmp/fixed.out"

trib up "$conf/single-switch-4.conf" --dilation 1 >/dev/null || fail "a second fabric"
[ "$(policy single-switch-4)" = SCHED_BATCH ] || fail "found policy $(policy single-switch-4) at dilation 1, expected SCHED_BATCH"
refuses 1 'several fabrics are up' perf -b 4K
refuses 1 'several fabrics are up' down
perf_ok side "$conf/single-switch-4.conf" -b 4K -e 4K -n 2
trib down "$conf/two-hosts.conf" >/dev/null || fail "down of one"
trib status >"$tmp/status.out" || fail "the other is down as well"
trib down >/dev/null || fail "down of the other"
[ -e "$run" ] && fail "down left $(find "$run")"
pgrep -f "trib-switch.*$tmp" && fail "a trib-switch is left"

# a fabric whose processes were all killed does not stand in the way
trib up "$conf/two-hosts.conf" >/dev/null || fail "up again"
pid=$(pids_in "$run"/two-hosts/proc/*.pid)
kill -9 "$pid"
gone() { ! readlink "/proc/$pid/exe"; }
until_true 10 gone || fail "a killed trib-switch lives"
trib up "$conf/two-hosts.conf" >/dev/null || fail "up over the remains"
trib down >/dev/null || fail "down"
[ -e "$run" ] && fail "down left $run"
true
