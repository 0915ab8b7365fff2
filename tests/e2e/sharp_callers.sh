#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# UCC's tl/sharp and NVIDIA's NCCL SHARP plug-in, unmodified, on the fabric's switches, where they are installed and were built for
# SHARP: UCC_HOME=DIR, SHARP_PLUGIN=LIBNCCL-NET.SO, or where the system has them.
. "$(dirname "$0")/lib.sh"
export LD_LIBRARY_PATH=$TRIB_BUILD

plugin=${SHARP_PLUGIN:-$(ldconfig -p 2>/dev/null | awk '$1 ~ /^libnccl-net.*\.so/ { print $NF }' | while read -r f; do ldd "$f" | grep -q libsharp_coll && echo "$f"; done | head -n 1)}
ucc=${UCC_HOME:-/usr}
tl=$(find "$ucc"/lib*/ucc "$ucc"/lib/*/ucc -name 'libucc_tl_sharp.so' 2>/dev/null | head -n 1)
perf=$ucc/bin/ucc_perftest
missing=()
[ -n "$plugin" ] || missing+=("no NCCL plug-in that uses libsharp_coll (SHARP_PLUGIN=LIBNCCL-NET.SO)")
[ -n "$tl" ] && [ -x "$perf" ] || missing+=("no ucc_perftest and libucc_tl_sharp.so in $ucc (UCC_HOME=DIR)")
[ ${#missing[@]} -lt 2 ] || skip "${missing[0]}, ${missing[1]}"

reduced() { trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in; }
trib up leaf-spine-8 --dilation 10 >/dev/null || fail up
if [ -n "$plugin" ]; then
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    pids=()
    for r in 0 1 2 3; do
        NCCL_PLUGIN_P2P=ib NCCL_SOCKET_IFNAME=lo timeout 60 "$root/scripts/trib" exec "h$r" -- \
            "$TRIB_BUILD/tests/tools/sharp_plugin" "127.0.0.1:$port" "$r" 4 "$plugin" >>"$tmp/plugin.out" 2>&1 &
        pids+=($!)
    done
    for r in "${pids[@]}"; do wait "$r" || fail "the plug-in: $(cat "$tmp/plugin.out")"; done
    [ "$(grep -c 'operations exact by the plug-in' "$tmp/plugin.out")" = 4 ] || fail "the plug-in: $(cat "$tmp/plugin.out")"
    [ "$(reduced)" -gt 400000 ] || fail "leaf0 has reduced $(reduced) bytes"
fi
if [ -n "$tl" ] && [ -x "$perf" ]; then
    before=$(reduced)
    mpirun=(mpirun --oversubscribe)
    [ "$(id -u)" != 0 ] || mpirun+=(--allow-run-as-root)
    for coll in allreduce bcast barrier reduce_scatter allgather; do
        "${mpirun[@]}" --mca pml ob1 --mca btl tcp,self -x UCC_CLS=basic -x UCC_CL_BASIC_TLS=sharp,self -x UCC_TL_SHARP_TUNE=inf -x UCC_TL_SHARP_USE_INTERNAL_OOB=n -np 4 \
            "$root/scripts/trib" exec @rank -- "$perf" -c "$coll" -b 8192 -e 16384 -n 3 -w 1 -F >"$tmp/$coll.out" 2>&1 || fail "ucc_perftest -c $coll: $(tail -n 20 "$tmp/$coll.out")"
    done
    [ "$(reduced)" -gt $((before + 400000)) ] || fail "leaf0 has reduced $(($(reduced) - before)) bytes for UCC"
fi
[ ${#missing[@]} = 0 ] || echo "not run: ${missing[0]}"
