#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The service under a real systemd, which is process 1 of a namespace: it starts, starts again after its death and on demand, stops, and is
# upgraded and removed as the Debian package does it.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "a systemd of its own needs root"
systemd=$(ls /lib/systemd/systemd /usr/lib/systemd/systemd 2>/dev/null | head -n 1)
[ -n "$systemd" ] && command -v systemctl >/dev/null || skip "no systemd"
cgroups=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
[ -n "$cgroups" ] || skip "no cgroup2"

# Its machine: a root with a /run of its own, and of the units of this machine the targets alone.
cat >"$tmp/boot" <<END
set -e
echo \$\$ >"$cgroups/te.$$/cgroup.procs"
exec unshare -m -p -f -C -u -i --kill-child sh -e -c '
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 none /run
mkdir -p /run/systemd/system /run/lock
mount -t tmpfs none /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir /run/targets
for t in sysinit basic multi-user shutdown umount final exit network sockets paths timers slices local-fs local-fs-pre; do
    cp \$(readlink -f /lib/systemd/system/\$t.target) /run/targets/\$t.target
done
cp /lib/systemd/system/systemd-exit.service /run/targets
mount -t tmpfs -o mode=755 none /lib/systemd/system
cp /run/targets/* /lib/systemd/system
mount -t tmpfs -o mode=755 none /etc/systemd/system
mount -t tmpfs none /lib/systemd/system-generators
mkdir -p /etc/tributary
mount -t tmpfs -o mode=755 none /etc/tributary
mount -t tmpfs -o mode=755 none /usr/local
for f in passwd group; do
    cp -p /etc/\$f /run/\$f
    mount --bind /run/\$f /etc/\$f
done
if [ -e /usr/sbin/policy-rc.d ]; then # of this machine; what this test says counts in there
    { echo "#!/bin/sh"; echo "exit \\\$(cat /run/policy-says)"; } >/run/policy
    chmod +x /run/policy && echo 0 >/run/policy-says
    mount --bind /run/policy /usr/sbin/policy-rc.d
fi
mount --make-rshared /
exec env -i PATH=/usr/local/bin:/usr/bin:/bin container=other "$systemd" --system --unit=multi-user.target --log-target=null --show-status=no'
END
mkdir "$cgroups/te.$$" || skip "no cgroup can be made"
# shellcheck disable=SC2154
trap 'rc=$?; [ -z "${outer:-}" ] || kill -KILL $outer $(pgrep -P $outer) 2>/dev/null; sleep 0.3; find "$cgroups/te.$$" -depth -type d -exec rmdir {} + 2>/dev/null; rmdir /etc/tributary 2>/dev/null; (exit $rc); finish' EXIT
bash "$tmp/boot" >"$tmp/systemd.out" 2>&1 &
outer=$!
pid1() { pgrep -P $outer; }
inside() { nsenter -t "$(pid1)" -m -p -C -u -i env -i HOME=/ PATH=/usr/local/bin:/usr/bin:/bin "$@"; }
runs() { [ "$(inside systemctl is-system-running 2>/dev/null)" = running ]; }
until_true 10 runs || skip "systemd does not start as process 1 of a namespace here: $(inside systemctl is-system-running 2>&1 | tail -n 1)"

install_all() {
    inside make -C "$root" --no-print-directory -s -o all install BUILD="$TRIB_BUILD" PREFIX=/usr/local >"$tmp/install.out" 2>&1 ||
        fail "make install: $(tail -n 3 "$tmp/install.out")"
}
package() { # package SCRIPT ARG...: what dpkg runs
    inside "$root/packaging/debian/tributary.$1" "${@:2}" >"$tmp/package.out" 2>&1 || fail "$*: $(cat "$tmp/package.out")"
}
install_all
inside sh -c "install -m 600 '$conf/two-hosts.conf' /etc/tributary/lab.conf"
package postinst configure ''
inside systemctl enable --now tributary@lab >"$tmp/start.out" 2>&1 || fail "start: $(cat "$tmp/start.out"; inside systemctl status --no-pager tributary@lab)"
main() { inside systemctl show -p MainPID --value tributary@lab; }
state() { [ "$(inside systemctl is-active tributary@lab)" = "$1" ]; }
state active || fail "it is not active"
inside systemctl status --no-pager tributary@lab >"$tmp/status.out"
has 'fabric lab is up' "$tmp/status.out"
inside trib status --all >"$tmp/all.out" || fail "status --all"
has '^fabric lab of user [a-z0-9_-]+: run directory /run/tributary/lab/lab' "$tmp/all.out"
has_not 'of user root' "$tmp/all.out" # a user that exists while it runs
[ "$(inside stat -c %a /etc/tributary/lab.conf)" = 600 ] || fail "its conf was made readable"

# Used by those whom its conf names: two students as their hosts, one by a group, and root, who may look, change, and capture too. Nobody else.
inside systemctl stop tributary@lab || fail "stop"
state inactive || fail "stopped: it is $(inside systemctl is-active tributary@lab)"
for wait in 0 0.2; do # while it starts
    inside systemctl reset-failed tributary@lab # and what counts the starts of ten seconds
    inside systemctl start --no-block tributary@lab
    sleep $wait
    inside systemctl stop tributary@lab
    state inactive || fail "stopped $wait s after the start: it is $(inside systemctl is-active tributary@lab)"
done
inside systemctl reset-failed tributary@lab
as() { # as UID OUTPUT TRIB-ARG...
    local uid=$1 out=$tmp/$2.out
    shift 2
    inside setpriv --reuid "$uid" --regid "$uid" "${groups:---clear-groups}" trib "$@" >"$out" 2>&1
}
inside sh -c "cat >>/etc/passwd && printf 'tribclass:x:4243:\\n' >>/etc/group" <<<"tribs0:x:4240:4240::/:/bin/sh
tribs1:x:4241:4241::/:/bin/sh
tribs2:x:4242:4242::/:/bin/sh"
sed '/^name/d; s/^dilation .*/dilation = 1000;/' "$conf/single-switch-4.conf" >"$tmp/lab.conf"
cat >>"$tmp/lab.conf" <<'END'
access = ( { user = "tribs0"; hosts = ( "h0" ); }, { user = "tribs1"; hosts = ( "h1", "h3" ); }, { group = "tribclass"; hosts = ( "h3" ); } );
END
inside sh -c "cat >/etc/tributary/lab.conf" <"$tmp/lab.conf"
inside systemctl start tributary@lab || fail "start with access: $(inside systemctl status --no-pager tributary@lab)"
for who in '4240 h0' '4241 h1' '4241 h3'; do
    as "${who% *}" student exec lab "${who#* }" -- ibv_devinfo || fail "$who: $(cat "$tmp/student.out")"
    has PORT_ACTIVE "$tmp/student.out"
    has_not 'denied|no private' "$tmp/student.out"
done
groups=--groups=4243 as 4242 student exec lab h3 -- ibv_devinfo || fail "by a group: $(cat "$tmp/student.out")"
has_not 'denied|no private' "$tmp/student.out"
for who in '4240 h1' '4241 h0' '4242 h3'; do # another's host, another's, nobody's
    as "${who% *}" other exec lab "${who#* }" -- ibv_devinfo && fail "$who may"
    has_not PORT_ACTIVE "$tmp/other.out"
done
as 4240 status status || fail "status of a student: $(cat "$tmp/status.out")"
has '^fabric lab of user' "$tmp/status.out"
as 4240 other link lab h0-switch0 down && fail "a student changes a link"
as 4240 other down lab && fail "a student takes it down"
as 4242 other status && fail "somebody else sees it up"
as 4240 other exec --isolate lab h0 -- ibv_devinfo && fail "isolated"
has 'found --isolate and the fabric of a service' "$tmp/other.out"
cd_run='cd /run/tributary/lab/lab &&'
for may_not in 'flock -n shared true' 'cat port/h1/host.token' 'ls port/h1' 'mv port/h0/0.1.sock port/h0/x' 'rm port/h0/host.token' 'touch proc/x' 'ls dpdk' 'cat proc/fabric.log' 'cat /etc/tributary/lab.conf'; do
    inside setpriv --reuid 4240 --regid 4240 --clear-groups sh -c "$cd_run $may_not" >"$tmp/other.out" 2>&1 && fail "a student may: $may_not"
    has 'denied|not permitted' "$tmp/other.out"
done
inside setpriv --reuid 4242 --regid 4242 --clear-groups sh -c 'ls /run/tributary/lab/lab' >"$tmp/other.out" 2>&1 && fail "somebody else looks into it"
# two students' programs meet, and root's beside them
inside sh -c "setpriv --reuid 4240 --regid 4240 --clear-groups trib exec lab h0 -- ibv_rc_pingpong -g 0 -p $port -n 100 & sleep 1
    setpriv --reuid 4241 --regid 4241 --clear-groups trib exec lab h1 -- ibv_rc_pingpong -g 0 -p $port -n 100 127.0.0.1 && wait \$!" >"$tmp/pair.out" 2>&1 ||
    fail "students' programs: $(cat "$tmp/pair.out")"
[ "$(grep -c '100 iters' "$tmp/pair.out")" = 2 ] || fail "students' programs: $(cat "$tmp/pair.out")"
# more programs of a student than slots that listen ahead
inside setpriv --reuid 4240 --regid 4240 --clear-groups trib exec lab h0 -- sh -c '
    cd /run/tributary/lab/lab && programs=
    for i in 1 2 3 4 5 6 7; do ibv_asyncwatch >/dev/null 2>&1 & programs="$programs $!"; done
    for n in $(seq 150); do [ "$(find port/h0 -name "0.*.lock" -size +0 | wc -l)" -lt 7 ] || break; sleep 0.2; done
    kill $programs; [ "$n" -lt 150 ]' >"$tmp/many.out" 2>&1 || fail "seven programs of a student: $(cat "$tmp/many.out")"
# what a student puts in the way of root's programs leads nowhere
inside mkdir -m 777 /run/victim
inside setpriv --reuid 4240 --regid 4240 --clear-groups sh -c "$cd_run cd port/h0 && for f in 0.counters.0 eal.0; do ln -s /run/victim \$f; done" || fail "a student's link"
as 0 root exec lab h0 -- ibv_devinfo || fail "root: exec"
[ -z "$(inside ls -A /run/victim)" ] || fail "root has followed a student's link: $(inside ls -A /run/victim)"
inside setpriv --reuid 4240 --regid 4240 --clear-groups sh -c "$cd_run rm port/h0/0.counters.0 port/h0/eal.0"
as 0 root exec lab h0 -- ibv_devinfo || fail "root: exec"
as 0 root status lab --links || fail "root: status --links"
has ' h0 +s' "$tmp/root.out"
as 0 root link lab h2-switch0 loss=1% || fail "root: link: $(cat "$tmp/root.out")"
as 0 root capture lab h0-switch0 -o "/run/root.pcapng" -t 1 || fail "root: capture: $(cat "$tmp/root.out")"
inside test -s /run/root.pcapng || fail "root: no capture"
inside ls -A /run/tributary/lab/lab >"$tmp/ls.out"
has_not capture "$tmp/ls.out"
as 0 root link lab h2-switch0 clear || fail "root: link clear"
as 0 root link lab h0-switch0 down || fail "root: link down"
as 4240 student exec lab h0 -- cat /sys/class/infiniband/trib0/ports/1/state || fail "a student's sysfs: $(cat "$tmp/student.out")"
has '1: DOWN' "$tmp/student.out"
as 0 root link lab h0-switch0 up || fail "root: link up"
as 0 root perf lab all_reduce -b 4K -e 4K -n 1 -w 0 --max-wall 60 || fail "root: perf: $(cat "$tmp/root.out")"
inside systemctl restart tributary@lab || fail "restart after use"
state active || fail "it is not active after a restart"

# again: on demand, after the death of one process, and of all, and after root's trib down
first=$(main)
inside systemctl restart tributary@lab || fail "restart"
[ "$(main)" != "$first" ] || fail "restart: the same process"
again() { state active && [ "$(main)" != "$first" ]; }
for what in main all down; do
    first=$(main)
    if [ $what = all ]; then
        inside systemctl kill -s KILL --kill-who=all tributary@lab
    elif [ $what = down ]; then
        as 0 root down lab || fail "root: down"
    else
        inside sh -c 'kill -KILL $(head -n 1 /run/tributary/lab/lab/proc/fabric.pid)'
    fi
    until_true 15 again || fail "not again after $what: $(inside systemctl status --no-pager tributary@lab)"
done

# an upgrade starts again what runs, and nothing else; a removal leaves neither processes nor links
until_true 15 state active || fail "it is $(inside systemctl is-active tributary@lab)"
first=$(main)
install_all
if [ -e /usr/sbin/policy-rc.d ]; then # nothing is to be started or stopped here
    inside sh -c 'echo 101 >/run/policy-says'
    package postinst configure 0.1
    has 'policy-rc.d returned 101' "$tmp/package.out"
    package prerm remove
    [ "$(main)" = "$first" ] && until_true 15 state active || fail "policy-rc.d is not asked: it is $(inside systemctl is-active tributary@lab)"
    inside sh -c 'echo 0 >/run/policy-says'
fi
package prerm upgrade 9.9
package postinst configure 0.1
again || fail "after an upgrade the old programs run on"
first=$(main)
package prerm remove
state inactive || fail "after a removal it is $(inside systemctl is-active tributary@lab)"
inside make -C "$root" --no-print-directory -s uninstall PREFIX=/usr/local >/dev/null 2>&1
package postrm remove
left=$(inside find /etc/systemd/system /run/tributary -name '*tributary@*' -o -path '/run/tributary/*')
[ -z "$left" ] || fail "left: $left"
pgrep -f "trib-(switch|keep) .*/run/tributary/lab" >/dev/null && fail "left processes"
true
