#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# wheel.sh BUILD: the Python package, in BUILD/wheel. Needs setuptools and wheel (Debian: python3-setuptools, python3-wheel), no network. The library is
# not in it: TRIB_LIB, TRIB_BUILD or the system's loader finds it.
set -eu
cd "$(dirname "$0")/.."
wheel=${1:?expected: wheel.sh BUILD}/wheel
rm -rf "$wheel"
mkdir -p "$wheel"
cp -r python "$wheel/src"
(cd "$wheel/src" && /usr/bin/python3 -c 'import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))' .. >../build.log 2>&1) ||
    { cat "$wheel/build.log" >&2; exit 1; }
rm -rf "$wheel/src"
ls "$wheel"/*.whl
