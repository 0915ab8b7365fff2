#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# system_test.sh SUITE ARCH: builds all of it for another Debian, and runs its unit tests there: trixie amd64 (DPDK 24.11, gcc 14) natively in
# a bare root of its own, SUITE arm64 by a cross compiler and qemu-user. Needs root, debootstrap and a mirror; for arm64
# gcc-aarch64-linux-gnu and qemu-user-static, too. Exit code 77 where one of them is missing. The root is /srv/tributary-SUITE-ARCH, and goes.
set -u
suite=${1:-trixie} arch=${2:-amd64}
top=$(cd "$(dirname "$0")/.." && pwd)
root=/srv/tributary-$suite-$arch
mirror=${DEBIAN_MIRROR:-} # debootstrap's own, if nothing is said

skip() { echo "skipped: $*" >&2; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || skip "a bare root needs root"
command -v debootstrap >/dev/null || skip "no debootstrap"
[ "$arch" = amd64 ] || [ "$arch" = arm64 ] || fail "found architecture $arch, expected amd64 or arm64"
[ ! -e "$root" ] || fail "$root is there"
trap 'for d in dev/shm dev proc sys run src; do umount -l "$root/$d" 2>/dev/null; done; umount -l "$root" 2>/dev/null; rm -rf --one-file-system "$root"' EXIT

mounts() {
    mount --bind "$root" "$root" || fail "mount" # what runs there makes mounts of its own
    mkdir -p "$root"/{dev,proc,sys,run,src}
    mount --bind /dev "$root/dev"
    mount --bind /dev/shm "$root/dev/shm"
    mount -t proc proc "$root/proc"
    mount --bind /sys "$root/sys"
    mount -t tmpfs run "$root/run"
}
sources() { (cd "$top" && git ls-files -z | xargs -0 tar cf -) | tar xf - -C "$1"; }

mkdir -p "$root"
if [ "$arch" = amd64 ]; then
    debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 || skip "debootstrap: $(tail -n 1 "$root.log")"
    mounts
    cp /etc/resolv.conf "$root/etc/"
    sources "$root/src"
    chroot "$root" sh -c 'cd /src && apt-get update -qq && DEBIAN_FRONTEND=noninteractive scripts/setup.sh test' || fail "packages"
    chroot "$root" sh -c "cd /src && make -j$(nproc) programs && make -j$(nproc) unit" || fail "unit tests"
    chroot "$root" sh -c 'cd /src && for t in exec collectives ucx session; do TRIB_BUILD=build bash tests/e2e/$t.sh || [ $? = 77 ] || exit 1; done' || fail "end to end"
else
    command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc (package gcc-aarch64-linux-gnu)"
    command -v qemu-aarch64-static >/dev/null || skip "no qemu-aarch64-static (package qemu-user-static)"
    [ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null
    grep -q enabled /proc/sys/fs/binfmt_misc/qemu-aarch64 2>/dev/null || update-binfmts --enable qemu-aarch64 2>/dev/null
    grep -q enabled /proc/sys/fs/binfmt_misc/qemu-aarch64 2>/dev/null || skip "no binfmt for qemu-aarch64 (update-binfmts --enable qemu-aarch64)"
    packages=libc6-dev,libdpdk-dev,libibverbs-dev,libconfig-dev,libjansson-dev,libnuma-dev,libpcap-dev,libbsd-dev,libmd-dev,libelf-dev,zlib1g-dev,libssl-dev
    packages=$packages,libmicrohttpd-dev,libncurses-dev,libprotobuf-c-dev,libcmocka-dev,libxdp-dev,libbpf-dev,bash
    debootstrap --foreign --arch=arm64 --variant=minbase --include="$packages" "$suite" "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 || skip "debootstrap: $(tail -n 1 "$root.log")"
    for d in "$root"/var/cache/apt/archives/*.deb; do dpkg -x "$d" "$root"; done # its packages as files are enough
    mounts
    sources "$root/src"
    lib=$root/usr/lib/aarch64-linux-gnu
    (cd "$root/src" && PKG_CONFIG_LIBDIR=$lib/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root QEMU_LD_PREFIX=$root \
        make -j"$(nproc)" CC="aarch64-linux-gnu-gcc --sysroot=$root" AR=aarch64-linux-gnu-ar NVCC= MPI_INCLUDE= MPICC= programs unit-programs) || fail "the cross build"
    # Beyond qemu-user, in this order: preadv2(RWF_NOWAIT); prctl(PR_GET_THP_DISABLE); an assertion of its own; the address of a fault at an
    # address that the machine below does not have, and madvise(MADV_POPULATE_WRITE).
    beyond=' host/hca/test_events sim/world/test_memory host/hca/memory/test_memory host/hca/memory/test_odp '
    failed=0 passed=0
    for t in $(cd "$root/src/build/tests" && find . -name 'test_*' -type f -perm -u+x | sed 's/..//' | sort); do
        [[ "$beyond" != *" $t "* ]] || continue
        timeout 1200 chroot "$root" sh -c "cd /src && exec build/tests/$t" >"$root/t.out" 2>&1
        rc=$?
        [ $rc = 0 ] || [ $rc = 77 ] || { failed=$((failed + 1)) && echo "FAILED $t: $rc" && tail -n 5 "$root/t.out"; }
        [ $rc != 0 ] || passed=$((passed + 1))
    done
    echo "$passed passed, $failed failed, beyond qemu-user:$beyond"
    [ $failed = 0 ] || exit 1
fi
