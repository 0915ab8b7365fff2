#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Everything works for an ordinary user without huge pages.
# tier: core
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "runs as an ordinary user already"
command -v setpriv >/dev/null || skip "no setpriv"
dir=$(mktemp -d /tmp/tu.XXXXXX)
chmod 755 "$dir"
mkdir -p "$dir/b"
cp "$TRIB_BUILD"/trib "$TRIB_BUILD"/trib-* "$TRIB_BUILD/libtribverbs.so" "$dir/b/"
cp -r "$root/scripts" "$root/conf" "$dir/"
mkdir "$dir/r"
chown -R 65534:65534 "$dir"
(cd "$dir" && XDG_RUNTIME_DIR=$dir/r TRIB_BUILD=$dir/b setpriv --reuid 65534 --regid 65534 --clear-groups \
    scripts/trib perf conf/single-switch-4.conf -b 4K -e 64K -f 16 -n 2 --max-wall 5 -J "$dir/r/x.json") >"$tmp/user.out" 2>&1
rc=$?
left=$(find "$dir/r" -mindepth 1 ! -name x.json)
rm -rf "$dir"
[ $rc = 0 ] || fail "exit code $rc"
has 'values : 0 OK' "$tmp/user.out"
[ -z "$left" ] || fail "left behind: $left"
