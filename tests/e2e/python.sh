#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Python package: every call of tributary.coll (tests/tools/coll_check.py) from a checkout, from an installed prefix and from a wheel;
# where it looks for the library, and what it says when there is none.
# load: any
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1

# ranks N ALGO: coll_check.py on the first N hosts; output in ranks.out
ranks() {
    local n=$1 algo=$2 r rc=0 pids=()
    next_port
    for ((r = 0; r < n; r++)); do
        timeout 60 "$root/scripts/trib" exec "h$r" -- $python "$root/tests/tools/coll_check.py" "127.0.0.1:$port" $r "$n" "$algo" >"$tmp/rank.$r" 2>&1 &
        pids+=($!)
    done
    for r in "${pids[@]}"; do wait "$r" || rc=$?; done
    cat "$tmp"/rank.* >"$tmp/ranks.out" && rm "$tmp"/rank.*
    [ "$rc" = 0 ] && [ "$(grep -c "all right, $algo" "$tmp/ranks.out")" = "$n" ] || fail "coll_check.py $algo: $(cat "$tmp/ranks.out")"
}
loads() { (cd / && env -u TRIB_BUILD "$@" $python -c 'from tributary import _lib, __version__ as v; print(v, _lib.load()._name)') >"$tmp/loads.out" 2>&1; }

trib up leaf-spine-8 --dilation 20 >/dev/null || fail up
PYTHONPATH=$root/python ranks 4 sharp,ring

make -C "$root" --no-print-directory -s -o all install BUILD="$TRIB_BUILD" PREFIX="$tmp/prefix" >"$tmp/install.out" 2>&1 || fail "make install: $(tail -n 5 "$tmp/install.out")"
packages=$tmp/prefix/lib/python3/dist-packages
(unset TRIB_BUILD && export PATH=$tmp/prefix/bin:$PATH PYTHONPATH=$packages && ranks 2 ring) || exit 1
version=$(sed -n 's/.*TRIB_VERSION "\(.*\)".*/\1/p' "$root/base/version.h")
loads PYTHONPATH="$packages" || fail "from the prefix"
has "^$version $tmp/prefix/lib/libtributary.so.1" "$tmp/loads.out"

# By name, as a folder, as `trib` names its library there, and by the system's loader.
mv "$tmp/prefix/lib/libtributary.so.1" "$tmp/lib.so"
mkdir "$tmp/other" && cp "$tmp/lib.so" "$tmp/other/libtributary.so.1" && mkdir "$tmp/other/tributary" && : >"$tmp/other/tributary/libtribverbs.so"
for at in "$tmp/other" "$tmp/other/libtributary.so.1" "$tmp/other/tributary" "$tmp/other/tributary/libtribverbs.so"; do
    loads PYTHONPATH="$packages" TRIB_LIB="$at" || fail "TRIB_LIB=$at"
    has "$tmp/other/libtributary.so.1" "$tmp/loads.out"
done
loads PYTHONPATH="$packages" LD_LIBRARY_PATH="$tmp/other" || fail "by the loader"
has ' libtributary.so.1$' "$tmp/loads.out"
loads PYTHONPATH="$packages" TRIB_LIB="$tmp/nowhere" && fail "no library"
has "OSError: cannot load libtributary.so.1: .*; looked for $tmp/nowhere/libtributary.so.1, .*$tmp/prefix/lib/libtributary.so.1 and where the system" "$tmp/loads.out"

$python -c 'import setuptools, wheel, venv' 2>/dev/null || skip "all but the wheel: no setuptools, wheel or venv for $python"
make -C "$root" --no-print-directory -s wheel BUILD="$tmp" >"$tmp/wheel.out" 2>&1 || fail "make wheel: $(cat "$tmp/wheel.out")"
$python -m zipfile -e "$tmp"/wheel/tributary-"$version"-py3-none-any.whl "$tmp/unpacked"
[ -e "$tmp/unpacked/tributary/py.typed" ] && [ -e "$tmp/unpacked/tributary/torch.py" ] || fail "what is in the wheel: $(ls -R "$tmp/unpacked")"
