#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lint.sh BUILD: the static checks of `make lint`. Those of BUILD's objects run where it is built.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build} ruff=ruff==0.6.9 # by pip, 10 MB, in build/lint; mypy is Debian's

if [ -f "$build/libbase.a" ]; then scripts/arrows.sh "$build"; else scripts/arrows.sh; fi
[ ! -f "$build/man/trib.1" ] || scripts/unused.py "$build"
scripts/spdx.sh
scripts/shells.sh
scripts/inputs.sh
scripts/one_helper.py
scripts/names.py
scripts/sizes.sh
CHECK=1 tests/mutations.sh
TABLE=tests/threat_model.txt CHECK=1 tests/mutations.sh
CHECK=1 tests/protocols/mutations.sh
[ -x build/lint/bin/ruff ] || { mkdir -p build/lint && pip install --quiet --no-deps --target build/lint $ruff; } >build/lint.log 2>&1 || true
if [ -x build/lint/bin/ruff ]; then
    build/lint/bin/ruff check --no-cache --quiet python tests scripts examples
else
    echo "lint: skipped ruff: pip cannot install it: $(tail -n 1 build/lint.log)"
fi
mkdir -p "$build/cppcheck"
cache=$(realpath "$build")/mypy
(cd python && /usr/bin/mypy --no-error-summary --cache-dir="$cache" -p tributary)
git ls-files '*.c' '*.h' | xargs clang-format-14 --dry-run --Werror
# cppcheck takes an assertion that is compiled out for a test of its pointer (world_port.c), one branch of fabric_latency()'s condition for a test of
# the other's pointer, and the address of a struct's array for what is in it (ctuuninitvar); it sees no loop behind a _Pragma (arith_loops.h,
# reduce_refs.h), where vectors are loaded by float's pointers.
git ls-files '*.c' | xargs cppcheck -j2 --quiet --cppcheck-build-dir="$build/cppcheck" --error-exitcode=1 --enable=warning,portability --inline-suppr -I. \
    --suppress=missingIncludeSystem --suppress=nullPointerRedundantCheck:fabric/fabric.h --suppress=ctuuninitvar \
    --suppress=nullPointerRedundantCheck:sim/world/world_port.c --suppress=uninitvar:aggregation/arith_*.h \
    --suppress=invalidPointerCast:aggregation/arith_*.h --suppress=uninitvar:tests/bench/reduce_refs.h
