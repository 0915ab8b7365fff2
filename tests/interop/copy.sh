#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copy.sh ROOT PROGRAM...: copies programs, with the libraries that they need, into a root for guests.
set -u
root=$1
shift
mkdir -p "$root/bin"
for p; do
    f=$(command -v "$p") || { echo "copy.sh: found no $p" >&2; exit 1; }
    cp -L "$f" "$root/bin/" || exit 1
    ldd "$f" 2>/dev/null | grep -o '/[^ ]*' | while read -r lib; do
        dest=$root/$(dirname "$lib")
        mkdir -p "$dest"
        [ -f "$root/$lib" ] || cp -L "$lib" "$dest/" || exit 1
    done || exit 1
done
