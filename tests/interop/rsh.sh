#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rsh.sh GUEST COMMAND...: runs a command in a guest with our standard input and output as its own, as ssh would. GUESTS is the folder
# with the guests' control pipes. The command's socket goes through QEMU's user network.
set -u
guest=$1
shift
while :; do
    port=$((20000 + RANDOM % 20000))
    grep -qi ":$(printf %04X $port) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 || break
done
busybox nc -l -p "$port" 127.0.0.1 <&0 &
child=$!
trap 'kill $child 2>/dev/null' EXIT
line="nc 192.168.76.2 $port -e $* 2>/tmp/rsh.out; echo; cat /tmp/rsh.out"
printf '%d %s\n' "${#line}" "$line" >"$GUESTS/$guest/ctl.in"
wait $child
