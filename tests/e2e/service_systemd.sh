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

# again: on demand, and after the death of one process, and of all
first=$(main)
inside systemctl restart tributary@lab || fail "restart"
[ "$(main)" != "$first" ] || fail "restart: the same process"
again() { state active && [ "$(main)" != "$first" ]; }
for what in main all; do
    first=$(main)
    if [ $what = all ]; then
        inside systemctl kill -s KILL --kill-who=all tributary@lab
    else
        inside sh -c 'kill -KILL $(head -n 1 /run/tributary/lab/lab/proc/fabric.pid)'
    fi
    until_true 15 again || fail "$what killed: $(inside systemctl status --no-pager tributary@lab)"
done

# an upgrade starts again what runs, and nothing else; a removal leaves neither processes nor links
first=$(main)
install_all
package prerm upgrade 9.9
package postinst configure 0.1
again || fail "after an upgrade the old programs run on"
first=$(main)
package prerm remove
state inactive || fail "after a removal it runs"
inside make -C "$root" --no-print-directory -s uninstall PREFIX=/usr/local >/dev/null 2>&1
package postrm remove
left=$(inside find /etc/systemd/system /run/tributary -name '*tributary@*' -o -path '/run/tributary/*')
[ -z "$left" ] || fail "left: $left"
pgrep -f "trib-(switch|keep) .*/run/tributary/lab" >/dev/null && fail "left processes"
true
