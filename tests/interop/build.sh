#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds what the guests boot, into DIR: vmlinuz and initrd.cpio, from Debian's own packages. Nothing is installed. Exit code 77 and
# a reason as the last line when the kernel cannot be had.
set -u
dir=${1:?found no argument, expected a folder}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1

say() { echo "build.sh: $*"; }
skip() { say "$*"; exit 77; }
die() { say "$*" >&2; exit 1; }

for p in cpio busybox ibv_rc_pingpong ib_write_bw ip rdma apt-get dpkg-deb; do
    command -v "$p" >/dev/null || skip "found no $p; scripts/setup.sh interop installs it"
done

# Kept as long as what it is made of is the same.
stamp=$(cat "${BASH_SOURCE[0]}" "$here/init" | cksum)
[ -f "$dir/stamp" ] && [ "$(cat "$dir/stamp")" = "$stamp" ] && exit 0
rm -f "$dir/stamp"

# ---- the kernel: downloaded and unpacked, not installed ----------------------------------------------
kernel=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
[ -n "$kernel" ] || skip "found no kernel package (package lists missing, or not an amd64 Debian)"
if [ ! -d "$dir/kernel/lib/modules" ]; then
    rm -rf "$dir/kernel" "$dir/deb"
    mkdir -p "$dir/deb" || exit 1
    (cd "$dir/deb" && timeout 300 apt-get download "$kernel" >"$dir/download.log" 2>&1) ||
        skip "cannot download $kernel: $(tail -n 1 "$dir/download.log")"
    dpkg-deb -x "$dir"/deb/*.deb "$dir/kernel" || die "cannot unpack $kernel"
    rm -rf "$dir/deb"
fi
cp "$dir"/kernel/boot/vmlinuz-* "$dir/vmlinuz" || die "found no vmlinuz in $kernel"

# ---- the root ---------------------------------------------------------------------------------------
root=$dir/root
rm -rf "$root"
mkdir -p "$root"/{bin,etc/libibverbs.d,lib/modules,lib64,proc,sys,dev,tmp,run} || exit 1
mkdir "$root/usr" && ln -s ../lib "$root/usr/lib" && ln -s ../bin "$root/usr/bin" && ln -s ../bin "$root/usr/sbin" && ln -s bin "$root/sbin"

# Insmod order. crc32_generic is not among rdma_rxe's declared dependencies, but rdma_rxe asks the kernel for "crc32".
for m in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net crc32_generic \
    udp_tunnel ip6_udp_tunnel ib_core ib_uverbs rdma_rxe; do
    f=$(find "$dir/kernel/lib/modules" -name "$m.ko*" | head -n 1)
    [ -n "$f" ] || die "found no module $m in $kernel"
    case $f in
    *.xz) xz -dc "$f" >"$root/lib/modules/$m.ko" ;;
    *.zst) zstd -qdc "$f" >"$root/lib/modules/$m.ko" ;;
    *) cp "$f" "$root/lib/modules/$m.ko" ;;
    esac || die "cannot unpack $f"
    echo "$m" >>"$root/lib/modules/order"
done

"$here/copy.sh" "$root" busybox ip rdma ibv_devices ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong ibv_uc_pingpong ib_send_bw \
    ib_write_bw ib_read_bw || exit 1
driver=$(find /usr/lib -name 'librxe-rdmav*.so' | head -n 1)
[ -n "$driver" ] || skip "found no librxe-rdmav*.so (package ibverbs-providers)"
mkdir -p "$root/${driver%/*}"
cp "$driver" "$root/$driver" && cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/" || die "cannot copy the rxe driver"
for a in sh mount insmod mkdir cat ls ps nc kill sleep dmesg poweroff ping arp env grep head tail ifconfig; do
    ln -sf busybox "$root/bin/$a"
done
install -m 755 "$here/init" "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$dir/initrd.cpio" || die "cannot pack the root"
echo "$stamp" >"$dir/stamp"
