#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Another user of the machine against the victim's files: a run directory made in advance, links and FIFOs where logs, pid files, locks,
# confs and pages are, a directory exchanged while a fabric starts, somebody else's TRIB_RUN, links where results go, a pid that is
# somebody else's by now, a run directory that is a link to /etc for an administrator. The victim's file keeps its bytes and nobody hangs.
. "$(dirname "$0")/../e2e/lib.sh"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip "not root: no other users"
victim=65531 attacker=65532
. "$(dirname "$0")/lib_users.sh"
mkdir "$w/b" "$w/own" "$w/evil"
mkdir -m 1777 "$w/tmp" # what /tmp is
install_in "$w/b"
chown $victim:$victim "$w/own"
chown $attacker:$attacker "$w/evil"
as() { # as UID CMD...: with /tmp of this test for both
    (cd "$w" && exec env -u TRIB_RUN TRIB_BUILD="$w/b" ${xdg:+XDG_RUNTIME_DIR="$xdg"} setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}")
}
evil() { as $attacker "$@"; }
precious=$w/own/precious
# as the victim, with a bound in time: v CMD...
v() {
    timeout -k 2 40 env TRIB_BUILD="$w/b" ${xdg:+XDG_RUNTIME_DIR="$xdg"} ${dir:+TRIB_RUN="$dir"} \
        setpriv --reuid $victim --regid $victim --clear-groups "$@" >"$tmp/v.out" 2>&1 </dev/null
    rc=$?
    [ $rc != 124 ] && [ $rc != 137 ] || fail "$what: hangs: $*"
    return $rc
}
reset() {
    dir='' xdg=$w/tmp
    rm -rf "$w"/tmp/* "$w"/evil/* "$w"/own/*
    echo kept >"$precious"
    chown $victim:$victim "$precious"
    chmod 600 "$precious"
}
kept() { [ "$(cat "$precious")" = kept ] && [ -f "$precious" ] || fail "$what: the victim's file was written to: $(head -c 200 "$precious" | tr -d '\0')"; }
refused() { # refused TEXT CMD...
    v "${@:2}" && fail "$what: is taken: ${*:2}"
    grep -qE "$1" "$tmp/v.out" || fail "$what: says not /$1/: $(cat "$tmp/v.out")"
    kept
}
up="$w/scripts/trib up $w/conf/two-hosts.conf"
base=$w/tmp/tributary-$victim
run1=$base/two-hosts

# ---- made in advance, closed and open, with links in proc/ ----
for mode in 755 1777; do
    what="a directory made in advance, mode $mode"
    reset
    evil mkdir -p "$run1/proc"
    for f in proc/fabric.log proc/fabric.pid proc/fabric.ready proc/fabric.ended shared fabric.conf fabric.path keeper dilation.fixed; do
        evil ln -s "$precious" "$run1/$f"
    done
    evil chmod $mode "$base" "$run1" "$run1/proc"
    refused "tributary-$victim.*user (65532|$attacker)" $up
    refused "tributary-$victim.*user (65532|$attacker)" "$w/scripts/trib" status
    refused "tributary-$victim.*user (65532|$attacker)" "$w/b/trib-switch" "$w/conf/two-hosts.conf"
    evil rm -rf "$base"
done

# ---- the victim's own directories, but others may write to them ----
what="a run directory that anybody can write to"
reset
dir=$w/own/run
v mkdir "$dir" && v chmod 777 "$dir" "$w/own"
evil mkdir "$dir/proc"
evil ln -s "$precious" "$dir/proc/fabric.log"
evil chmod 777 "$dir/proc"
refused "$w/own: found a directory of user $victim with mode 0777" $up
chmod 755 "$w/own"
refused "$dir: found a directory of user $victim with mode 0777" $up

what="a TRIB_RUN in a directory that anybody can write to"
reset
mkdir -m 777 "$w/tmp/open"
dir=$w/tmp/open/run
refused "$w/tmp/open: found a directory of user 0 with mode 0777, expected" $up
[ ! -e "$dir" ] || fail "$what: was made"

what="a run directory that is another user's link"
reset
v mkdir -m 700 "$w/own/mine"
evil ln -s "$w/own/mine" "$w/tmp/run"
dir=$w/tmp/run
refused "$w/tmp/run: found a link of user $attacker" $up
[ -z "$(ls "$w/own/mine")" ] || fail "$what: was written to"

# ---- exchanged while a fabric starts: in a sticky directory nobody can; in another one nobody starts ----
what="a directory exchanged while a fabric starts"
reset
mkdir -m 777 "$w/tmp/open"
dir=$w/tmp/open/run
evil mkdir -p "$w/evil/run/proc" "$w/evil/run/port" "$w/evil/run/link"
for f in proc/fabric.log proc/fabric.pid proc/fabric.ready shared; do evil ln -s "$precious" "$w/evil/run/$f"; done
evil chmod -R 777 "$w/evil/run"
evil sh -c "for i in \$(seq 300); do mv $dir $w/evil/old\$i && cp -a $w/evil/run $dir; sleep 0.01; done" 2>/dev/null &
mover=$!
for i in 1 2; do v $up; done
kill $mover
wait $mover 2>/dev/null
v "$w/scripts/trib" down
kept

# ---- programs that join a fabric of somebody else's TRIB_RUN ----
what="somebody else's TRIB_RUN"
reset
dir=$w/evil/run
evil mkdir -p "$dir/proc" "$dir/port/h0" "$dir/link"
evil cp "$w/conf/two-hosts.conf" "$dir/fabric.conf"
evil sh -c "echo $w/conf/two-hosts.conf >$dir/fabric.path; truncate -s 40M $dir/shared"
evil ln -s "$precious" "$dir/port/h0/0.0.lock"
evil ln -s "$precious" "$dir/auto.lock"
evil chmod -R a+rwX "$dir"
for cmd in "$w/b/trib-perf $w/conf/two-hosts.conf" "$w/b/trib-enter h0 $w/b/libtribverbs.so true" "$w/b/trib-switch --run $dir $w/conf/two-hosts.conf" \
    "$w/b/trib-telemetry $dir /" "$w/scripts/trib exec h0 -- true" "$w/scripts/trib link h0-switch0" "$w/scripts/trib down" "$w/scripts/trib capture h0-switch0 -o $w/own/x.pcap" "$up"; do
    refused "user ($attacker|two-hosts)" $cmd
done
! command -v ibv_devices >/dev/null || { v env TRIB_HOST=h0 LD_PRELOAD="$w/b/libtribverbs.so" ibv_devinfo; kept; has "run directory $w/evil: found a directory of user $attacker" "$tmp/v.out"; }

# ---- a FIFO, a link and a device in place of each file, by a process of the same user that means it: nobody hangs or follows ----
what="no plain file in the run directory"
for f in shared fabric.path proc/fabric.pid proc/fabric.ended; do
    reset
    v sh -c "mkdir -p $run1/proc $run1/port $run1/link && cp $w/conf/two-hosts.conf $run1/fabric.conf && rm -f $run1/$f && mkfifo $run1/$f"
    v "$w/scripts/trib" status
    v "$w/scripts/trib" down two-hosts
    f=${f/%ended/ready}
    v sh -c "mkdir -p $run1/proc $run1/port $run1/link && rm -f $run1/$f && ln -s $precious $run1/$f"
    timeout 0.3 setpriv --reuid $victim --regid $victim --clear-groups env XDG_RUNTIME_DIR="$xdg" "$w/b/trib-switch" "$w/conf/two-hosts.conf" >"$tmp/v.out" 2>&1
    kept
done

# ---- results: a link of the attacker's in /tmp, which realpath(3) follows whatever fs.protected_symlinks says ----
what="a link where results go"
reset
perf="$w/b/trib-sim $w/conf/two-hosts.conf -b 4K -e 4K --algo ring"
for how in "-J $w/tmp/x" "--trace $w/tmp/x"; do
    evil ln -sf "$precious" "$w/tmp/x"
    refused 'cannot write .*/x: Operation not permitted' $perf $how
    rm "$w/tmp/x"
    evil mkfifo "$w/tmp/x"
    evil chmod 666 "$w/tmp/x"
    refused 'cannot write .*/x: Operation not permitted' $perf $how
    rm "$w/tmp/x"
done
what="a link under the name of the temporary file"
evil perl -e 'symlink $ARGV[0], "$ARGV[1].$_.tmp" for $ARGV[2] .. $ARGV[2] + 20000' "$precious" "$w/tmp/r.json" "$$"
v $perf -J "$w/tmp/r.json"
kept
[ -s "$w/tmp/r.json" ] || fail "$what: no result: $(cat "$tmp/v.out")"

# ---- a fabric that is up: captures, a pid file whose process is another one by now ----
what="a running fabric"
reset
v $up --dilation 1 || fail "up: $(cat "$tmp/v.out")"
evil ln -s "$precious" "$w/tmp/c.pcap"
refused "another user's link" "$w/scripts/trib" capture h0-switch0 -o "$w/tmp/c.pcap" -t 0.1
evil mkfifo "$w/tmp/d.pcap"
refused 'no plain file' "$w/scripts/trib" capture h0-switch0 -o "$w/tmp/d.pcap" -t 0.1
[ "$(wc -l <"$run1/proc/fabric.pid")" = 2 ] || fail "the pid file has no start time: $(cat "$run1/proc/fabric.pid")"
for d in "$base" "$run1" "$run1"/proc "$run1"/port "$run1"/link; do
    [ "$(stat -c '%u %a' "$d")" = "$victim 700" ] || fail "$d: $(stat -c '%u %a' "$d")"
done
[ -z "$(find "$base" ! -type l ! -type d -perm /022)" ] || fail "others can write to $(find "$base" ! -type l -perm /022)"
evil ls "$run1" >/dev/null 2>&1 && fail "another user can look into the run directory"
for s in $(find "$base" -type s); do evil python3 -c "import socket,sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1])" "$s" 2>/dev/null && fail "another user connects to $s"; done
what="a library that others can change"
evil cp "$w/b/libtribverbs.so" "$w/evil/"
refused "$w/evil: found user $attacker" env TRIB_LIB="$w/evil/libtribverbs.so" "$w/scripts/trib" exec two-hosts h0 -- true
cp "$w/b/libtribverbs.so" "$w/own/open.so"
chmod 666 "$w/own/open.so"
refused "open.so: found user 0 and mode 0666" env TRIB_LIB="$w/own/open.so" "$w/scripts/trib" perf two-hosts -b 4K -e 4K
v "$w/scripts/trib" down || fail "down: $(cat "$tmp/v.out")"
[ ! -e "$base" ] || fail "down left $(find "$base")"

# ---- an administrator takes a fabric down whose run directory is the attacker's link to somebody else's directory ----
what="an administrator's trib down"
reset
mkdir -p "$w/tmp/root/proc"
touch "$w/tmp/root/shared" "$w/tmp/root/precious" "$w/tmp/root/fabric.path"
evil ln -s "$w/tmp/root" "$w/evil/run"
evil bash -c 'exec -a trib-switch perl -e "sleep 60" -- --run "$0"' "$w/evil/run" &
until_true 5 pgrep -f "^trib-switch .*--run $w/evil/run" || fail "no process that looks like a fabric's"
for cmd in status down; do
    TRIB_RUN=$w/evil/run timeout 20 "$w/scripts/trib" $cmd >"$tmp/root.out" 2>&1 </dev/null
    [ $? != 124 ] || fail "$what: trib $cmd hangs"
    [ -e "$w/tmp/root/precious" ] && [ -e "$w/tmp/root/shared" ] || fail "$what: trib $cmd followed the link: $(ls "$w/tmp/root")"
done
exit 0
