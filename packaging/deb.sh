#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian package, with what is built already in BUILD: deb.sh [BUILD]. It and what dpkg says of it are in BUILD/deb.
set -eu
cd "$(dirname "$0")/.."
top=$PWD
mkdir -p "${1:-build}"
build=$(cd "${1:-build}" && pwd)
version=$(sed -n 's/.*TRIB_VERSION "\(.*\)".*/\1/p' base/version.h)
deb=$build/deb

rm -rf "$deb"
mkdir -p "$deb/tributary"
cp -r packaging/debian "$deb/tributary/debian"
cd "$deb/tributary"
# Date of the commit: the same commit is the same package.
when=$(git -C "$top" log -1 --format=%cD 2>/dev/null || date -R)
printf 'tributary (%s) bookworm; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- The Tributary authors <tributary@localhost>  %s\n' \
    "$version" "$when" >debian/changelog
TOP=$top BUILD=$build dpkg-buildpackage -b -us -uc >"$deb/log" 2>&1 || {
    tail -n 20 "$deb/log" >&2
    echo "deb.sh: dpkg-buildpackage failed; all that it said is in $deb/log" >&2
    exit 1
}
ls "$deb"/*.deb
