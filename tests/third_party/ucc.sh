#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# UCC with several teams of eight ranks at once (ucc_teams.c): all are granted aggregation trees at a dilation of 20, every
# sum is right and made in the switches. UCC_HOME=DIR has a UCC that was configured --with-sharp=PREFIX/lib/tributary/sharp; no Debian
# release has one.
. "$(dirname "$0")/../e2e/lib.sh"
ucc=${UCC_HOME:-/usr}
[ -n "$(find "$ucc"/lib*/ucc "$ucc"/lib/*/ucc -name 'libucc_tl_sharp.so' 2>/dev/null | head -n 1)" ] || skip "no libucc_tl_sharp.so in $ucc (UCC_HOME=DIR, configured --with-sharp)"
command -v mpicc >/dev/null || skip "no mpicc (package libopenmpi-dev)"
mpicc -O2 -Wall -Wextra -Werror -I"$ucc/include" -o "$tmp/teams" "$root/tests/third_party/ucc_teams.c" -L"$ucc/lib" -Wl,-rpath,"$ucc/lib" -lucc >"$tmp/cc.out" 2>&1 ||
    fail "mpicc: $(cat "$tmp/cc.out")"
# The library under test goes before the one that UCC was configured with.
mkdir -p "$tmp/lib" && cp "$TRIB_BUILD/libsharp_coll.so.5" "$TRIB_BUILD/libtributary.so.1" "$tmp/lib" || fail "cp"
mpi=(timeout -k 5 100 mpirun --oversubscribe --mca pml ob1 --mca btl tcp,self -np 8 -x UCC_CLS=basic -x UCC_CL_BASIC_TLS=sharp,self
    -x UCC_TL_SHARP_TUNE=inf -x UCC_TL_SHARP_USE_INTERNAL_OOB=n -x SHARP_COLL_LOG_LEVEL=2 -x "LD_LIBRARY_PATH=$tmp/lib")
[ "$(id -u)" = 0 ] && mpi+=(--allow-run-as-root)
export HOME=$tmp

trib up leaf-spine-8 --dilation 20 >/dev/null || fail "no fabric"
"${mpi[@]}" "$root/scripts/trib" exec @rank -- "$tmp/teams" "${TEAMS:-16}" >"$tmp/teams.out" 2>&1 || fail "exit code $?: $(tail -n 5 "$tmp/teams.out")"
has "^ucc_teams: ${TEAMS:-16} teams of 8 ranks, 0 wrong" "$tmp/teams.out"
has_not 'sharp\[.*(error|warning)' "$tmp/teams.out"
reduced=$(trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in)
[ "$reduced" -ge $((${TEAMS:-16} * 4 * 4 * 16384)) ] || fail "leaf0 has reduced $reduced bytes"
tail -n 1 "$tmp/teams.out"
