#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# target.sh TARGET: what `make TARGET` does beside building: installs packages, has make build what is needed, and runs it. make gives BUILD, CC and MAKE,
# and the variables of its command line. What is skipped (exit code 77) is no failure.
set -eu
cd "$(dirname "$0")/.."
flags=${MAKEFLAGS:-} flags=${flags%% *}
case $flags in
-* | *=*) ;;
*[nqt]*) exit 0 ;; # make -n and its like run nothing
esac
build=${BUILD:-build}
[ -z "${V:-}" ] || set -x

packages() { scripts/setup.sh "$1"; }
made() { "${MAKE:-make}" --no-print-directory "$@"; }
in_mode() { # in_mode MODE NAME...: built in build-MODE
    local mode=$1
    shift
    made MODE="$mode" BUILD="build-$mode" "${@/#/build-$mode/}"
}
test_programs() { packages test && made programs test-programs; }
skippable() { "$@" || [ $? = 77 ]; }
e2e() { skippable env TRIB_BUILD="$build" bash "tests/e2e/$1.sh"; }
# venv FOLDER MODULE PACKAGE...: Python of FOLDER with packages by pip; where pip cannot, whoever needs it says so.
venv() {
    local folder=$1 module=$2
    shift 2
    [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
    "$folder/bin/python" -c "import $module" 2>/dev/null || "$folder/bin/pip" install --quiet "$@" || true
}

case ${1:-} in
demo) packages build && made programs && scripts/demo.sh "$build" ;;
test)
    packages test
    made programs unit-programs static-programs bench-programs
    BUILD=$build tests/run.sh first core
    ;;
integration | thirdparty)
    packages test
    [ "$1" = integration ] || packages torch || true
    made all test-programs static-programs
    BUILD=$build tests/run.sh "$1"
    ;;
unit) packages test && made unit-programs && BUILD=$build tests/run.sh unit ;;
e2e)
    packages test
    made programs test-programs static-programs bench-programs
    BUILD=$build tests/run.sh e2e
    ;;
hostile) test_programs && BUILD=$build tests/run.sh hostile ;;
static) packages build && made static-programs ;;
matrix) packages test && made unit-programs && MATRIX=whole "$build/tests/sim/test_matrix_types" ;;
formulas) packages test && made unit-programs && FORMULAS=whole "$build/tests/sim/test_formulas" ;;
# 200 host agents killed under load, one after the other; the switches must outlive them all. Then every part of `trib perf`, and ranks, verbs
# programs and switch processes, 30 times each at random moments: nothing may be left, and nobody else blamed.
kills)
    test_programs
    KILLS=200 TRIB_BUILD=$build bash tests/e2e/kill_rank.sh
    ROUNDS=30 TRIB_BUILD=$build bash tests/e2e/kill_parts.sh
    KILLS=30 TRIB_BUILD=$build bash tests/e2e/kills.sh
    ;;
clocks) packages test && made programs && BUILD=$build tests/clocks.sh ;;
clock-faults) packages test && made programs && BUILD=$build tests/clock_faults.sh ;;
scale) packages test && made programs && BUILD=$build tests/scale.sh ;;
chaos) packages test && in_mode checked trib-sim && BUILD=build-checked tests/chaos.sh ;;
# In the first tier 60 of these run; some 10 a second, in the build with assertions.
trunk-seeds)
    packages test
    in_mode checked tests/io/trunk/test_trunk_seeds
    SEED=${SEED:-1} SEEDS=${SEEDS:-1000} build-checked/tests/io/trunk/test_trunk_seeds
    ;;
keep-seeds)
    packages test
    in_mode checked tests/trib/life/test_keep_seeds
    SEED=${SEED:-1} SEEDS=${SEEDS:-1000} build-checked/tests/trib/life/test_keep_seeds
    ;;
faults) packages test && in_mode asan trib-sim trib-plan trib-model && BUILD=build-asan tests/faults.py ;;
mutations | threat-model)
    packages test
    in_mode checked trib-sim libtests-support.a
    if [ "$1" = threat-model ]; then export KNOWN=1 TABLE=tests/threat_model.txt; fi
    BUILD=build-checked tests/mutations.sh
    ;;
mutate) packages test && BUILD=build-checked python3 tests/mutate ;;
protocol-mutations) packages test && made "$build/trib-check-protocol" && BUILD=$build tests/protocols/mutations.sh ;;
rounding) packages test && made build/trib-sim && BUILD=$build tests/rounding.sh ;;
corruptions) packages test && tests/chaos_corruptions.sh ;;
interop)
    packages interop
    made programs test-programs
    TRIB_BUILD=$build skippable tests/interop/run.sh
    TRIB_BUILD=$build skippable tests/interop/machines.sh
    ;;
# Nothing of rdma-core's tests stays but in the build folder.
verbs-suite) made all && { packages verbs-suite || true; } && TRIB_BUILD=$build skippable tests/verbs_suite.sh ;;
# mpi4py's own tests are in its source package, by pip in build/third-party.
suites)
    made all test-programs
    packages torch || true
    mpi4py=mpi4py-$(/usr/bin/python3 -c 'import mpi4py; print(mpi4py.__version__)' 2>/dev/null) || mpi4py=
    if [ -n "$mpi4py" ] && [ ! -e "build/third-party/$mpi4py" ]; then
        mkdir -p build/third-party
        (cd build/third-party && pip download --quiet --no-deps --no-binary mpi4py "${mpi4py/-/==}" && tar xf "$mpi4py.tar.gz") >build/third-party.log 2>&1 || true
    fi
    TRIB_BUILD=$build tests/third_party/run.sh
    ;;
torch) made all && { packages torch || true; } && e2e torch ;;
nixl)
    made programs
    venv build/nixl nixl,numpy --no-deps nixl nixl-cu12 numpy
    NIXL_PYTHON=$PWD/build/nixl/bin/python e2e nixl
    ;;
# Gigabytes; PIP_INDEX_URL= names where a wheel for CPUs alone is.
torch2)
    made all
    venv build/torch2 torch torch numpy
    TORCH_PYTHON=$PWD/build/torch2/bin/python e2e torch
    ;;
python-test)
    made all
    packages python || true
    if [ ! -f build/axe/axe_core_python/axe.min.js ]; then
        { mkdir -p build/axe && pip download --quiet --no-deps --dest build/axe axe-core-python==0.1.0 && python3 -m zipfile -e build/axe/*.whl build/axe; } \
            >build/axe.log 2>&1 || true
    fi
    for t in results sweep lab report; do e2e python_$t; done
    ;;
wheel) packaging/wheel.sh "$build" ;;
deb) packages deb && packaging/deb.sh "$build" ;;
deb-test) packaging/deb_test.sh "$build" ;;
container-test) packaging/container_test.sh "$build" ;;
# Minutes; with ARCH=arm64 a quarter of an hour.
system-test) skippable packaging/system_test.sh "${SUITE:-trixie}" "${ARCH:-amd64}" ;;
gpu-nccl) packages build && made programs && BUILD=$build tests/gpu_nccl.sh ;;
coverage) packages coverage && in_mode coverage trib-sim && made MODE=coverage BUILD=build-coverage unit-programs && tests/coverage.sh build-coverage ;;
asan | debug) made MODE="$1" BUILD="build-$1" unit ;;
# In three builds (-O2, with assertions, -O1 under sanitizers): tables, JSON, frames.
determinism)
    packages build
    made build/trib-sim
    in_mode checked trib-sim
    in_mode asan trib-sim
    tests/determinism.sh build build-checked build-asan
    ;;
# One simulation by one, two and four threads, traced and not, over fabrics with fault plans: the same bytes. Two minutes.
one-result) packages test && made build/trib-sim && BUILD=build tests/one_result.sh ;;
# Threads of one program under the thread sanitizer, which wants addresses that are not random.
tsan)
    packages test
    set -- tests/host/hca/test_threads tests/sim/test_slices
    in_mode tsan "$@"
    for t in "$@"; do setarch -R "build-tsan/$t"; done
    ;;
explain-real) packages test && made programs && ALL=1 TRIB_BUILD=$build tests/e2e/explain_real.sh ;;
# Predictions of conf/*-measured.conf beside published measurements (docs/validation.md): minutes; offline.
validate) packages build && made "$build/trib-sim" && scripts/validate --build "$build" --plots "$build/validate" ;;
bench) packages bench && made programs bench-programs && BUILD=$build tests/bench/run.sh ;;
bench-quick) packages bench && made programs bench-programs && BUILD=$build tests/bench/run.sh --quick ;;
docs-test) packages test && packages python && made programs && BUILD=$build tests/docs.sh ;;
docs-check) scripts/docs_links.py && scripts/docs_tables.py --check "$build" ;;
docs-tables) scripts/docs_tables.py "$build" ;;
# Each target, or those of FUZZ_TARGETS="memif arp", runs FUZZ_SECONDS under libFuzzer; the corpus is tests/fuzz/corpus.
fuzz)
    packages fuzz
    made CC=clang-14 MODE=fuzz BUILD=build-fuzz fuzz-programs
    BUILD=build-fuzz FUZZ_SECONDS=${FUZZ_SECONDS:-30} FUZZ_TARGETS=${FUZZ_TARGETS:-} tests/fuzz/run.sh
    ;;
format) packages lint && git ls-files '*.c' '*.h' | xargs clang-format-14 -i ;;
lint) packages lint && scripts/lint.sh "$build" ;;
*)
    echo "target.sh: found '${1:-}', expected a target that 'make help' names" >&2
    exit 2
    ;;
esac
