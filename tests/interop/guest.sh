#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Guests: boot one, have it run something. Sourced by run.sh, after tests/e2e/lib.sh. A guest is QEMU under software emulation; its
# control is a pair of pipes (its second serial port), its way to this machine for tests' out-of-band TCP is QEMU's user network:
# the machine is 192.168.76.2 to it, and its port 7000 is 127.0.0.1:$(guest_port NAME) here.

declare -A g_in g_out g_port g_pid g_told
boot_limit=120

free_port() {
    local p
    while :; do
        p=$((20000 + RANDOM % 20000))
        grep -qi ":$(printf %04X $p) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 || { echo $p; return; }
    done
}

guest_port() { echo "${g_port[$1]}"; }

# guest_start NAME ADDRESS MAC MTU END OVERLAY: the NIC's other end is a vhost-user socket, or tap:INTERFACE. guest_in: what QEMU is started by.
guest_in=()
guest_start() {
    local name=$1 ip=$2 mac=$3 mtu=$4 dir=$tmp/$1 fd
    local nic=(-chardev "socket,id=c0,path=$5" -netdev vhost-user,id=d0,chardev=c0,queues=1)
    [[ $5 != tap:* ]] || nic=(-netdev "tap,id=d0,ifname=${5#tap:},script=no,downscript=no,vhost=off")
    mkdir "$dir" && mkfifo "$dir/ctl.in" "$dir/ctl.out" || fail "cannot make pipes"
    cat "$art/initrd.cpio" "$6" >"$dir/initrd"
    g_port[$name]=$(free_port)
    "${guest_in[@]}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -M q35 -m 256M -nodefaults -no-user-config -display none -no-reboot \
        -kernel "$art/vmlinuz" -initrd "$dir/initrd" -serial "file:$dir/console.out" \
        -chardev "pipe,id=ctl,path=$dir/ctl" -serial chardev:ctl \
        -object memory-backend-memfd,id=mem,size=256M,share=on -numa node,memdev=mem \
        "${nic[@]}" \
        -device "virtio-net-pci,netdev=d0,mac=$mac,romfile=,vectors=0,csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,rx_queue_size=1024" \
        -netdev "user,id=u0,net=192.168.76.0/24,hostfwd=tcp:127.0.0.1:${g_port[$name]}-192.168.76.15:7000" \
        -device virtio-net-pci,netdev=u0,mac=52:54:00:76:00:01,romfile=,vectors=0 \
        -append "console=ttyS0 panic=-1 mitigations=off nokaslr quiet trib.ip=$ip trib.mac=$mac trib.mtu=$mtu" \
        >"$dir/qemu.out" 2>&1 &
    g_pid[$name]=$!
    exec {fd}<>"$dir/ctl.in"
    g_in[$name]=$fd
    exec {fd}<>"$dir/ctl.out"
    g_out[$name]=$fd
}

# guest_up NAME: waits until it takes commands.
guest_up() {
    local line
    while read -r -t "$boot_limit" -u "${g_out[$1]}" line; do
        [ "${line%$'\r'}" = up ] && return 0
    done
    echo "guest $1 did not come up within $boot_limit s; its console and QEMU said:"
    tail -n 15 "$tmp/$1/console.out" "$tmp/$1/qemu.out"
    return 1
}

guest_tell() {
    g_told[$1]=$2
    printf '%d %s\n' "${#2}" "$2" >&"${g_in[$1]}"
}

# guest_answer NAME SECONDS: what it prints until it is done; its exit code. 124: it is not done in time.
guest_answer() {
    local line end=$((SECONDS + $2))
    while [ "$SECONDS" -le "$end" ] && read -r -t "$2" -u "${g_out[$1]}" line; do
        line=${line%$'\r'}
        case $line in
        'done '[0-9]*) return "${line#done }" ;;
        again) guest_tell "$1" "${g_told[$1]}" ;;
        *) echo "$line" ;;
        esac
    done
    return 124
}

# guest NAME SECONDS COMMAND
guest() {
    guest_tell "$1" "$3"
    guest_answer "$1" "$2"
}
