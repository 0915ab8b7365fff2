#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The steps of the Containerfile, in a bare Debian under chroot, in place of a container engine: container_test.sh [BUILD]. What USER runs has no
# privileges and cannot get any. Needs root, debootstrap and a Debian mirror.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
[ "$(id -u)" = 0 ] || { echo "skipped: debootstrap and chroot need root"; exit 77; }
root=$(mktemp -d /tmp/tc.XXXXXX)
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
fail() {
    echo "FAILED: $*"
    [ ! -e "$build/deb/container.log" ] || tail -n 20 "$build/deb/container.log"
    exit 1
}
user=root dir=/
# A step, as the present user, without the caller's environment; no process that it starts gains privileges.
step() {
    unshare -m -p -f sh -c 'mount -t proc proc "$0/proc" && mount --bind /sys "$0/sys" && exec chroot "$0" "$@"' "$root" \
        setpriv --reuid "$(inside_id -u)" --regid "$(inside_id -g)" --clear-groups $([ "$user" = root ] || echo --bounding-set=-all --no-new-privs) \
        env -i HOME="$dir" PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c 'cd "$0" && exec "$@"' "$dir" "$@"
}
inside_id() { chroot "$root" id "$1" "$user"; }

while read -r word rest; do
    case $word in
    '' | '#'*) ;;
    FROM)
        [ "$rest" = debian:bookworm-slim ] || fail "found FROM $rest, expected debian:bookworm-slim"
        debootstrap --variant=minbase bookworm "$root" >"$build/deb/container.log" 2>&1 || fail "debootstrap"
        ;;
    COPY)
        # shellcheck disable=SC2086 # a pattern
        cp $(ls ${rest% *} | sed "s,^build/,$build/,") "$root${rest##* }" || fail "COPY $rest (make deb first?)"
        ;;
    RUN) step sh -ec "$rest" >>"$build/deb/container.log" 2>&1 || fail "RUN $rest" ;;
    USER) user=$rest ;;
    WORKDIR) dir=$rest ;;
    CMD)
        [ "$user" != root ] || fail "CMD as root"
        mapfile -t cmd < <(jq -r '.[]' <<<"$rest")
        step "${cmd[@]}" >"$build/deb/container.out" 2>&1 || { cat "$build/deb/container.out"; fail "CMD $rest"; }
        ;;
    *) fail "found $word, expected FROM, COPY, RUN, USER, WORKDIR or CMD" ;;
    esac
done <packaging/Containerfile
[ "$(grep -c 'values : 0 OK' "$build/deb/container.out")" = 2 ] || { cat "$build/deb/container.out"; fail "no results"; }
sed -n '/^# SHARP against/,$p' "$build/deb/container.out"
echo "ok      the Containerfile's steps, as user $user without privileges"
