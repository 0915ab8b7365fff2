#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh install | uninstall: what BUILD has into or out of DESTDIR/PREFIX. A conf of the user's in the same folders stays.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build} prefix=${PREFIX:-/usr/local} to=${DESTDIR:-}${PREFIX:-/usr/local}

programs="trib trib-plan trib-model trib-trace trib-switch trib-perf trib-sim trib-check-protocol trib-check-nccl-plugin"
scripts="trib-sweep trib-calibrate trib-explain trib-report trib-import trib-nccl"
# What users do not call by name: trib does.
helpers="trib-enter trib-keep trib-telemetry trib-status trib-metrics trib-top trib-faults"
helper_scripts="trib-capture trib-machines"
# Commands of which users read: each has a page.
pages="trib trib-perf trib-sim trib-plan trib-model trib-trace trib-switch trib-telemetry trib-status trib-metrics trib-top trib-faults trib-sweep trib-calibrate
    trib-explain trib-report trib-import trib-nccl trib-check-protocol trib-check-nccl-plugin"
completions=share/bash-completion/completions
package=lib/python3/dist-packages/tributary # where Debian's python3 looks below /usr and /usr/local
sharp=lib/tributary/sharp                   # as --with-sharp=DIR wants it
doc=share/doc/tributary

# Every file: mode, source, place below PREFIX; those in the build are named by it.
files() {
    local f
    for f in $programs; do echo "755 $build/$f bin/$f"; done
    for f in $scripts; do echo "755 scripts/$f bin/$f"; done
    for f in $helpers; do echo "755 $build/$f libexec/tributary/$f"; done
    for f in $helper_scripts; do echo "755 scripts/$f libexec/tributary/$f"; done
    for f in libtribverbs.so libtribhint.so libtribclock.so libnccl-net-tributary.so; do echo "755 $build/$f lib/tributary/$f"; done
    for f in openmpi/mca_coll_trib.so pmix/store_pmix.so; do # where their headers were
        [ "$1" = uninstall ] || [ -e "$build/$f" ] || continue
        echo "755 $build/$f lib/tributary/$f"
    done
    echo "755 host/sandbox/bin/rdma lib/tributary/bin/rdma"
    echo "755 $build/libtributary.so.1 lib/libtributary.so.1"
    echo "755 $build/libsharp_coll.so.5 $sharp/lib/libsharp_coll.so.5"
    for f in include/sharp/api/*.h; do echo "644 $f $sharp/$f"; done
    # Of aggregation protocols that are built outside of the tree.
    for f in include/tributary/*.h; do echo "644 $f $f"; done
    for f in conf/*.conf conf/{workloads,faults,jobs}/*.conf conf/schedules/*.sched conf/grafana/*.json; do echo "644 $f share/tributary/$f"; done
    for f in examples/protocol/{Makefile,tally.c,template.c} examples/coll/{Makefile,all_reduce.c,all_reduce_pmix.c,all_reduce.py,train.py}; do
        [ -x "$f" ] && echo "755 $f share/tributary/$f" || echo "644 $f share/tributary/$f"
    done
    echo "755 scripts/trib-sweep.sbatch share/tributary/trib-sweep.sbatch"
    echo "644 wireshark/tributary.lua share/tributary/wireshark/tributary.lua"
    for f in README.md LICENSE CHANGELOG.md CITATION.cff; do echo "644 $f $doc/$f"; done
    for f in docs/*.md docs/{img,labs,decisions}/*; do echo "644 $f $doc/${f#docs/}"; done
    for f in $pages; do echo "644 $build/man/$f.1 share/man/man1/$f.1"; done
    echo "644 host/session/tributary_coll.3 share/man/man3/tributary_coll.3"
    echo "644 $build/completion/trib.bash $completions/trib"
    echo "644 $build/completion/_trib share/zsh/site-functions/_trib"
    for f in python/tributary/*.py python/tributary/*/*.py python/tributary/py.typed; do
        case $f in python/tributary/*/*.py) [ -e "${f%/*}/__init__.py" ] || continue ;; esac
        echo "644 $f $package/${f#python/tributary/}"
    done
}
# Links, and files that are made: place and target.
links() {
    local f
    echo "lib/libtributary.so libtributary.so.1"
    echo "$sharp/lib/libsharp_coll.so libsharp_coll.so.5"
    for f in $programs $scripts; do [ "$f" = trib ] || echo "$completions/$f trib"; done
}
made="lib/systemd/system/tributary@.service lib/pkgconfig/tributary.pc"

install_all() {
    local mode from place
    files install | while read -r mode from place; do install -D -m "$mode" "$from" "$to/$place"; done
    links | while read -r place from; do ln -sf "$from" "$to/$place"; done
    install -d "$to/lib/systemd/system" "$to/lib/pkgconfig"
    sed "s|@BIN@|$prefix/bin|" packaging/systemd/tributary@.service.in >"$to/lib/systemd/system/tributary@.service"
    sed "s/@VERSION@/$(sed -n 's/.*TRIB_VERSION "\(.*\)".*/\1/p' base/version.h)/" scripts/tributary.pc.in >"$to/lib/pkgconfig/tributary.pc"
}

places() {
    { files uninstall | cut -d' ' -f3; links | cut -d' ' -f1; printf '%s\n' $made; } | sort -u
}
parents() { # of places, the inner ones first
    local place
    while read -r place; do
        while [[ $place == */* ]]; do
            place=${place%/*}
            echo "$place"
        done
    done | LC_ALL=C sort -ru
}
# Folders go where they are empty, but none that a system has below /usr and /usr/local itself.
uninstall_all() {
    local place kept=''
    case $prefix in /usr | /usr/local) kept=' bin include lib libexec share share/doc share/man ' ;; esac
    places | while read -r place; do rm -f "$to/$place"; done
    places | parents | while read -r place; do
        case $place in "$package"*) rm -rf "$to/$place/__pycache__" ;; esac
        [[ $kept = *" $place "* ]] || rmdir "$to/$place" 2>/dev/null || true
    done
    [ -n "$kept" ] || rmdir "$to" 2>/dev/null || true
}

case ${1:-} in
install) install_all ;;
uninstall) uninstall_all ;;
*) echo "install.sh: found '${1:-}', expected install or uninstall" >&2; exit 2 ;;
esac
