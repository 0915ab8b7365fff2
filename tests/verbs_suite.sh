#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's own test suite on the emulated HCA: every test in a process of its own, as a host of a fabric of one switch, with a
# limit of time. Prints a line a test and the counts; Debian's suite (v44, of the package python3-pyverbs) has to have no failure and
# at least 110 that pass. RDMA_CORE_TESTS=DIR runs the suite in DIR too (rdma-core's directory tests, or the one above it), with the
# pyverbs that PYTHONPATH finds: a current suite needs a pyverbs of its own. RDMA_CORE_ROOT=DIR runs the suite of the Debian in DIR with
# its Python and libibverbs (debootstrap --variant=minbase --include=python3-pyverbs,iproute2 sid DIR), as root. ONLY=REGEX runs some of
# the tests.
. "$(dirname "$0")/e2e/lib.sh"
least=110
limit=${SUITE_SECONDS:-90}
work=$TRIB_BUILD/verbs-suite
only=${ONLY:-.}

python=
for p in python3 /usr/bin/python3; do
    "$p" -c 'import pyverbs.device' >/dev/null 2>&1 && python=$p && break
done
[ -n "$python" ] || skip "no pyverbs for python3 (Debian: python3-pyverbs)"

# Prints the folder of the tests of Debian's package. An installation may lack documents; the package has them.
packaged() {
    local d=/usr/share/doc/rdma-core/tests
    [ -e $d/run_tests.py ] && echo $d && return
    (mkdir -p "$work/package" && cd "$work/package" && apt-get download -q python3-pyverbs && dpkg-deb -x python3-pyverbs_*.deb .) \
        >/dev/null 2>&1
    [ -e "$work/package$d/run_tests.py" ] && echo "$work/package$d"
}

# one TEST SLOT: its verdict and, where it is not ok, why.
one() {
    local name=$1 log=$out/$1 rc t0 verdict why=
    t0=$(date +%s%N)
    (cd "$suite/.." && exec timeout -k 5 "$limit" "$root/scripts/trib" exec "h$(($2 % 4))" -- "$python" tests/run_tests.py --dev trib0 -v "${name#tests.}") \
        >"$log" 2>&1 </dev/null
    rc=$?
    if [ $rc = 124 ] || [ $rc = 137 ]; then
        verdict=FAILED why="did not end within $limit s"
    elif [ $rc != 0 ]; then
        verdict=FAILED why=$(grep -E '^[A-Za-z_.]*(Error|Exception|Skip)[A-Za-z]*:' "$log" | tail -n 1)
        why="${why:-exit code $rc}"
    elif grep -q '^OK (skipped' "$log"; then
        verdict=skipped why=$(sed -n "s/.*skipped ['\"]\(.*\)['\"]$/\1/p" "$log" | head -n 1)
    else
        verdict=ok
    fi
    printf '%-7s %-86s %5.1f s%s\n' $verdict "${name#tests.}" "$((($(date +%s%N) - t0) / 100000000))e-1" "${why:+  $why}"
}
export -f one
export root python limit

# run_suite NAME DIRECTORY LEAST_OK: 0, 1 (failures, or too few pass), 77
run_suite() {
    local name=$1 from=$2 least_ok=$3 table=$work/$1.txt ok failed
    [ -e "$from/run_tests.py" ] || from=$from/tests
    [ -e "$from/run_tests.py" ] || { echo "skipped $name: found no run_tests.py in $2"; return 77; }
    suite=$work/$name/tests out=$work/$name/out
    rm -rf "${work:?}/$name"
    mkdir -p "$suite" "$out" && cp -rL "$from/." "$suite" && find "$suite" -name '*.gz' -exec gunzip -f {} +
    export suite out
    (cd "$suite/.." && "$python" tests/run_tests.py --dev trib0 --list-tests) >"$work/$name/list" 2>"$work/$name/list.err"
    grep '^tests\.' "$work/$name/list" | grep -E -- "$only" >"$work/$name/tests.txt"
    [ -s "$work/$name/tests.txt" ] || {
        echo "skipped $name: its tests cannot be loaded: $(grep -v '^ ' "$work/$name/list.err" | tail -n 1) (the pyverbs of $python is another version?)"
        return 77
    }
    xargs -P "$(nproc)" --process-slot-var=SLOT -I{} bash -c 'one "$1" "$SLOT"' - {} <"$work/$name/tests.txt" | tee "$table"
    ok=$(grep -c '^ok ' "$table") failed=$(grep -c '^FAILED' "$table")
    echo
    echo "$name: $ok ok, $failed failed, $(grep -c '^skipped' "$table") skipped; expected no failure$([ "$only" != . ] || [ "$least_ok" = 0 ] || echo ", at least $least_ok ok")"
    sed -n 's/^skipped [^ ]* *[0-9.]* s  //p' "$table" | sort | uniq -c | sort -rn | sed 's/^ *\([0-9]*\) /skipped \1: /'
    [ "$failed" -gt 0 ] && return 1
    [ "$only" != . ] || [ "$ok" -ge "$least_ok" ]
}

# in_root DIR: a program that runs the Python of the Debian in DIR, below our libraries, from the same working directory. What those need
# and it has not is in its /opt/tributary: older libraries run with a newer C library.
in_root() {
    local dir=$1 lib
    mkdir -p "$dir/opt/tributary"
    for lib in $(ldd "$TRIB_BUILD/libtribverbs.so" "$TRIB_BUILD/libtribhint.so" | awk '$3 ~ /^\// { print $3 }' | sort -u); do
        [[ "$lib" =~ /(libc|libm|libdl|libpthread|libibverbs|libnl-[^/]*)\.so ]] || cp -L "$lib" "$dir/opt/tributary/"
    done
    # The suite is written for fork, which from Python 3.14 on is not how multiprocessing starts: not all that it hands over can be pickled.
    echo 'import multiprocessing; multiprocessing.set_start_method("fork", force=True)' >"$dir/opt/tributary/sitecustomize.py"
    cat >"$work/python-in-root" <<END
#!/bin/sh
exec unshare -m --propagation private /bin/sh -c 'for d in /sys /dev /proc /tmp "$root" "$TRIB_BUILD"; do mkdir -p "$dir\$d" && mount --rbind "\$d" "$dir\$d" || exit 1; done
export LD_LIBRARY_PATH=/opt/tributary PYTHONPATH=/opt/tributary
exec chroot "$dir" /bin/sh -c '"'"'cd "\$0" && exec /usr/bin/python3 "\$@"'"'"' "\$PWD" "\$@"' - "\$@"
END
    chmod +x "$work/python-in-root"
    echo "$work/python-in-root"
}

# newest_libibverbs: of Debian's development suite, by apt with lists of its own; nothing is installed.
newest_libibverbs() {
    local d=$work/sid mirror
    mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)}
    mkdir -p "$d"/{lists/partial,archives/partial,x} && : >"$d/status" || return
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$d/sources.list"
    printf '%s\n' "Dir::Etc::SourceList \"$d/sources.list\";" 'Dir::Etc::SourceParts "-";' "Dir::State::Lists \"$d/lists\";" \
        "Dir::State::status \"$d/status\";" "Dir::Cache \"$d\";" 'Acquire::Languages "none";' >"$d/apt.conf"
    (cd "$d" && export APT_CONFIG=$d/apt.conf && rm -f ./*.deb && timeout 120 apt-get update -q && timeout 120 apt-get download -q libibverbs1 &&
        dpkg-deb -x libibverbs1_*.deb x) >"$d/log" 2>&1 || return
    find "$d/x" -name 'libibverbs.so.1.*' -type f | head -n 1
}
newest=$(newest_libibverbs)
if [ -n "$newest" ]; then
    LIBIBVERBS=$newest TRIB_BUILD=$TRIB_BUILD bash "$root/tests/e2e/verbs_symbols.sh" || fail "calls of the newest libibverbs in Debian"
else
    echo "skipped newest libibverbs: it cannot be downloaded"
fi

trib up "$conf/single-switch-4.conf" --dilation 1 >"$tmp/up.log" 2>&1 || fail "no fabric: $(tail -n 1 "$tmp/up.log")"
from=$(packaged) || skip "no tests of rdma-core: the package python3-pyverbs cannot be downloaded"
run_suite v44 "$from" $least
rc=$?
if [ -n "${RDMA_CORE_TESTS:-}" ]; then
    run_suite current "$RDMA_CORE_TESTS" 0
    now=$?
    [ $now = 77 ] || [ $rc != 0 ] || rc=$now
else
    echo "skipped current suite: RDMA_CORE_TESTS names no directory of rdma-core's tests"
fi
if [ -n "${RDMA_CORE_ROOT:-}" ]; then
    [ -x "$RDMA_CORE_ROOT/usr/bin/python3" ] || fail "found no Python in $RDMA_CORE_ROOT"
    python=$(in_root "$RDMA_CORE_ROOT")
    run_suite newest "$RDMA_CORE_ROOT/usr/share/doc/rdma-core/tests" 0
    now=$?
    [ $now = 77 ] || [ $rc != 0 ] || rc=$now
fi
exit $rc
