#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that are missing, by name: setup.sh build | test | bench | interop | verbs-suite | torch | python | fuzz | coverage | lint | deb
# Silent and quick when nothing is missing. Needs root or sudo only when something is.
set -u

build="gcc make pkg-config libdpdk-dev libibverbs-dev libconfig-dev libjansson-dev libnuma-dev
       libpcap-dev libbsd-dev libelf-dev zlib1g-dev libssl-dev python3
       libmicrohttpd-dev libncurses-dev libprotobuf-c-dev protobuf-c-compiler"
test="$build libcmocka-dev tshark ibverbs-utils perftest dpdk-dev procps jq time infiniband-diags
      ucx-utils openmpi-bin libopenmpi-dev libpmix-dev libmpich-dev python3-mpi4py hpcc python3-pyverbs python3-pyte prometheus systemd"
bench="$test iproute2 iperf3 openvswitch-switch-dpdk valgrind"
interop="$build tshark ibverbs-utils ibverbs-providers perftest procps qemu-system-x86 busybox-static zstd xz-utils cpio kmod
         iproute2"
fuzz="$test clang-14 libclang-rt-14-dev libfuzzer-14-dev"
verbs_suite="$build python3-pyverbs"
torch="$build python3-torch" # 150 MB to download, 630 MB installed
python="$build python3-pandas python3-matplotlib python3-libconf python3-nbconvert python3-ipykernel jupyter-nbconvert mypy chromium python3-pip"
coverage="$test gcovr"
lint="git clang-format-14 cppcheck mypy python3-pip"
deb="$build debhelper dh-python dpkg-dev fakeroot debootstrap"

case "${1:-}" in
build) want=$build ;;
test) want=$test ;;
bench) want=$bench ;;
interop) want=$interop ;;
verbs-suite) want=$verbs_suite ;;
torch) want=$torch ;;
python) want=$python ;;
fuzz) want=$fuzz ;;
coverage) want=$coverage ;;
lint) want=$lint ;;
deb) want=$deb ;;
*)
    echo "setup.sh: found '${1:-}', expected build, test, bench, interop, verbs-suite, torch, python, fuzz, coverage, lint or deb" >&2
    exit 2
    ;;
esac

command -v dpkg-query >/dev/null 2>&1 || {
    echo "setup.sh: this is not a Debian system; install the equivalents of:" $want >&2
    exit 0
}

missing=()
have=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' $want 2>/dev/null)"
for p in $want; do
    case "$have" in
    *" installed:$p "*) ;;
    *) missing+=("$p") ;;
    esac
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1 || ! { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        echo "setup.sh: these packages are missing and this user may not install them: ${missing[*]}" >&2
        echo "setup.sh: as root: apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
    sudo=(sudo)
fi

install() {
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# Some packages have a service (Open vSwitch): programs are wanted, nothing is to be started by installing them.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ] && printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee $policy >/dev/null 2>&1; then
    "${sudo[@]}" chmod 755 $policy
else
    policy=
fi
done_with() {
    rm -f "$log"
    [ -z "$policy" ] || "${sudo[@]}" rm -f "$policy"
}

echo "Installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
trap done_with EXIT
# The package lists may be absent or old: refresh them only when the first try fails.
if ! install >"$log" 2>&1; then
    "${sudo[@]}" apt-get update -q >"$log" 2>&1 && install >>"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        echo "setup.sh: could not install ${missing[*]} (above: what apt-get said)" >&2
        exit 1
    }
fi
