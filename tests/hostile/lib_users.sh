#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A directory $w that other users of the machine can enter, for tests with several users. All processes that name it end with the test.
# Sourced by the tests after e2e/lib.sh; not a test.
w=$(mktemp -d /tmp/th.XXXXXX)
end() {
    local rc=$? left
    left=$(pgrep -f "$w")
    # shellcheck disable=SC2086
    [ -z "$left" ] || kill -KILL $left 2>/dev/null
    rm -rf "$w"
    (exit $rc)
    finish
}
trap end EXIT
chmod 755 "$w"

# install_in DIR: programs, scripts and confs, readable for all
install_in() {
    cp "$TRIB_BUILD"/trib "$TRIB_BUILD"/trib-* "$TRIB_BUILD/libtribverbs.so" "$1/"
    cp -r "$root/scripts" "$root/conf" "$w/"
}
