#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every call that libibverbs exports is ours, of its version, or takes no object of ours (verbs_symbols.txt, of rdma-core 65): libibverbs' own
# would jump through a table that our contexts do not have. And calls that are newer than the header here work or are refused by name.
# LIBIBVERBS=FILE: another library to compare with than the system's (tests/verbs_suite.sh).
# A library of the future has calls that end in slots of that table.
# load: any
. "$(dirname "$0")/lib.sh"
list=$root/tests/e2e/verbs_symbols.txt
command -v nm >/dev/null || skip "no nm"

# Versions that new programs bind to; those of 2006 (IBVERBS_1.0) are for older ones.
exported() { nm -D --defined-only "$1" | awk '$2 == "T" && split($3, n, "@@") == 2 && n[2] !~ /PRIVATE/ { print n[1], n[2] }' | sort; }
exported "$TRIB_BUILD/libtribverbs.so" >"$tmp/ours"
awk '$3 == "ours" { print $1, $2 }' "$list" | sort | comm -23 - "$tmp/ours" >"$tmp/missing.out"
[ -s "$tmp/missing.out" ] && fail "libtribverbs.so does not export: $(tr '\n' ';' <"$tmp/missing.out")"

system=${LIBIBVERBS:-$(ldconfig -p | sed -n 's/.*libibverbs\.so\.1 .*x86-64.* => //p; s/.*libibverbs\.so\.1 .*AArch64.* => //p' | head -n 1)}
[ -e "$system" ] || skip "no libibverbs.so.1"
exported "$system" >"$tmp/system"
[ -s "$tmp/system" ] || fail "nothing is exported by $system"
awk '!/^#/ { print $1, $2 }' "$list" | sort | comm -13 - "$tmp/system" >"$tmp/unknown.out"
[ -s "$tmp/unknown.out" ] && fail "$system exports what $(basename "$list") does not know: $(tr '\n' ';' <"$tmp/unknown.out")"
[ -z "${LIBIBVERBS:-}" ] || { echo "$(wc -l <"$tmp/system") calls of $system"; exit 0; }

trib up "$conf/two-hosts.conf" >/dev/null || fail "no fabric"
trib exec h0 -- "$TRIB_BUILD/tests/tools/verbs_newer" >"$tmp/newer.out" 2>&1 || fail "newer calls: $(cat "$tmp/newer.out")"
for what in 'ibv_alloc_dmah: DMA handles' 'ibv_reg_mr_ex: found comp_mask 0x12' 'ibv_create_comp_cntr: completion counters' \
    'a call of libibverbs: not supported .* libibverbs is newer' '^[1-9][0-9]*00 Mb/s'; do
    has "$what" "$tmp/newer.out"
done

# Calls that nobody knows yet are refused by name, with what such a call returns when it fails.
${CC:-cc} -O2 -shared -fPIC -DFUTURE_LIBRARY "$root/tests/tools/verbs_future.c" -o "$tmp/libibverbs-future.so" || fail "a library"
trib exec h0 -- "$TRIB_BUILD/tests/tools/verbs_future" "$tmp/libibverbs-future.so" >"$tmp/future.out" 2>&1 || fail "future calls: $(cat "$tmp/future.out")"
for call in ibv_{query,create,modify,alloc,attach,import}_future ibv_future_export_fd 'a call of libibverbs'; do
    has "tributary: $call: not supported by the emulated HCA" "$tmp/future.out"
done
