#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib check-nccl-plugin with NVIDIA's plug-in (nccl-rdma-sharp-plugins), over the emulated HCAs and Tributary's SHARP: messages and reductions.
# SHARP_PLUGIN=LIBNCCL-NET.SO, or where the system has it. A receiver of it, or who has only sent, does not hear of a peer's end while it
# sends nothing, and NCCL does not need that: no rank is killed.
. "$(dirname "$0")/../e2e/lib.sh"
plugin=${SHARP_PLUGIN:-$(ldconfig -p 2>/dev/null | awk '$1 ~ /^libnccl-net.*\.so/ { print $NF }' | while read -r f; do ldd "$f" | grep -q libsharp_coll && echo "$f"; done | head -n 1)}
[ -n "$plugin" ] || skip "no NCCL plug-in that uses libsharp_coll (SHARP_PLUGIN=LIBNCCL-NET.SO)"
export LD_LIBRARY_PATH=$TRIB_BUILD NCCL_PLUGIN_P2P=ib NCCL_SOCKET_IFNAME=lo
timeout 200 "$root/scripts/trib" check-nccl-plugin -c leaf-spine-8 --dilation 10 --cases '[!k]*' "$plugin" >"$tmp/plugin.out" 2>&1 || fail "$(grep -v ' ok$' "$tmp/plugin.out")"
tail -n 1 "$tmp/plugin.out"
