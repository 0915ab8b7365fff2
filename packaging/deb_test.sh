#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the package into a bare Debian, where an ordinary user runs the demo's sizes in real and in virtual time, and removes it:
# nothing is left. deb_test.sh [BUILD]; needs root, and a Debian mirror.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(cd "${1:-build}" && pwd) || exit 1
[ "$(id -u)" = 0 ] || { echo "skipped: debootstrap and chroot need root"; exit 77; }
deb=$(ls "$build"/deb/*.deb) || { echo "deb_test: found no package in $build/deb, expected one by make deb" >&2; exit 1; }
root=$(mktemp -d /tmp/td.XXXXXX)
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
fail() {
    echo "FAILED: $*"
    [ ! -e "$root/tmp/out" ] || tail -n 20 "$root/tmp/out"
    exit 1
}
# What it mounts goes with the namespace.
inside() {
    unshare -m -p -f sh -c 'mount -t proc proc "$0/proc" && mount --bind /sys "$0/sys" && exec chroot "$0" "$@"' "$root" "$@"
}
user() { inside setpriv --reuid 1000 --regid 1000 --clear-groups env -i HOME=/srv/user PATH=/usr/bin:/bin sh -ec "cd; $1" >"$root/tmp/out" 2>&1 || fail "$1"; }
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache \) -prune -o -print | sort); }

needs=$(dpkg-deb -f "$deb" Depends | sed -E 's/ *\([^)]*\)//g; s/:any//g; s/ //g')
debootstrap --variant=minbase --include="$needs" bookworm "$root" >"$build/deb/debootstrap.log" 2>&1 ||
    fail "debootstrap: $(tail -n 3 "$build/deb/debootstrap.log")"
inside useradd -m -d /srv/user -u 1000 user || fail "useradd"
files >"$build/deb/before"
cp "$deb" "$root/tmp/tributary.deb"
inside dpkg -i /tmp/tributary.deb >"$root/tmp/out" 2>&1 || fail "dpkg -i"

user 'trib perf leaf-spine-8 all_reduce -g 8 --algo ring,sharp -b 4K -e 16M -f 64 -n 2 --max-wall 60 -J perf.json; grep -q "\"wrong\": 0" perf.json'
grep -q 'values : 0 OK' "$root/tmp/out" || fail "trib perf: no result"
user 'trib sim leaf-spine-8 --algo ring,sharp -b 4K -e 16M --csv sim.csv; grep -q ^all_reduce,sharp sim.csv'
user 'trib model h100-superpod-1024 all_reduce; trib sim leaf-spine-8 --jobs two; python3 -c "import tributary"'
for f in usr/share/man/man1/trib.1.gz usr/share/man/man3/tributary_coll.3.gz usr/share/bash-completion/completions/trib-perf \
    usr/lib/libtributary.so usr/include/tributary/coll.h; do
    [ -e "$root/$f" ] || fail "found no /$f"
done
PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/pkgconfig pkg-config --exists tributary || fail "pkg-config"

# Where policy-rc.d says that nothing is started or stopped here, an upgrade and a removal do neither to services.
had=$(ls -d "$root/run/systemd" 2>/dev/null)
mkdir -p "$root/run/systemd/system"
printf '#!/bin/sh\necho "$@" >>/tmp/asked\nexit $(cat /tmp/policy)\n' >"$root/usr/sbin/policy-rc.d"
printf '#!/bin/sh\necho "$@" >>/tmp/done\n' >"$root/usr/local/bin/systemctl"
chmod +x "$root/usr/sbin/policy-rc.d" "$root/usr/local/bin/systemctl"
for policy in 101 0; do
    echo $policy >"$root/tmp/policy"
    rm -f "$root/tmp/asked" "$root/tmp/done"
    for script in 'postinst configure 0.1' 'prerm remove'; do
        # shellcheck disable=SC2086
        inside sh /var/lib/dpkg/info/tributary.$script >>"$root/tmp/out" 2>&1 || fail "$script, policy $policy"
    done
    [ "$(cat "$root/tmp/asked")" = $'tributary@*.service try-restart\ntributary@*.service stop' ] || fail "policy-rc.d was asked: $(cat "$root/tmp/asked")"
    case $policy in
    101) ! grep -qE 'restart|stop' "$root/tmp/done" ;;
    0) [ "$(grep -cE '^(try-restart|stop) tributary@' "$root/tmp/done")" = 2 ] ;;
    esac || fail "policy $policy: $(cat "$root/tmp/done")"
done
rm -rf "$root/run/systemd/system" "$root/usr/sbin/policy-rc.d" "$root/usr/local/bin/systemctl"
[ -n "$had" ] || rmdir "$root/run/systemd"

inside dpkg -P tributary >"$root/tmp/out" 2>&1 || fail "dpkg -P"
rm -f "$root"/srv/user/*.json "$root"/srv/user/*.csv
files | diff "$build/deb/before" - >"$build/deb/left" || fail "left behind: $(cat "$build/deb/left")"
echo "ok      $(basename "$deb"): installed, run by a user, removed without a trace"
