#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The GPU kernels' build: every kernel for every target, no register spilled, nothing on the stack, and no CUDA library to be found at
# run time by the programs.
# clock: virtual
. "$(dirname "$0")/lib.sh"

reports=("$root"/build/images/*.ptxas)
multimem=$root/build/images/multimem.ptxas
[ -f "${reports[0]}" ] || skip "no nvcc: this build has no kernels"
kernels=$(grep -h 'Compiling entry function' "${reports[@]}" | wc -l)
targets=$(grep -ho "for 'sm_[0-9]*'" "${reports[@]}" | sort -u | wc -l)
names=$(grep -ho "entry function '[a-z0-9_]*'" "${reports[@]}" | sort -u | wc -l)
nvcc=$(command -v "${CUDA_HOME:-/none}/bin/nvcc" nvcc /usr/local/cuda/bin/nvcc | head -n 1)
known=$("$nvcc" --list-gpu-code | grep -cE '^sm_(75|80|90|100)$')
[ "$targets" = "$known" ] || fail "kernels for $targets targets, expected the $known of sm_75, sm_80, sm_90 and sm_100 that nvcc knows"
[ "$names" = 111 ] || fail "$names kernels, expected 111"
# Kernels of multimem are compiled only for targets that have its instructions.
switches=$(grep -ho "entry function 'multimem_[a-z0-9_]*'" "$multimem" | sort -u | wc -l)
later=$("$nvcc" --list-gpu-code | grep -cE '^sm_(90|100)$')
has_not "for 'sm_[78]" "$multimem"
[ "$kernels" = $(((names - switches) * targets + switches * later)) ] ||
    fail "$kernels compilations, expected each of $names kernels for each of $targets targets, $switches of them for $later"
[ "$(grep -h 'bytes stack frame' "${reports[@]}" | wc -l)" = "$kernels" ] || fail "not every kernel has its line on the stack"
bad=$(grep -hB1 'bytes stack frame' "${reports[@]}" | grep -v '0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' |
    grep -B1 'bytes stack frame' || true)
[ -z "$bad" ] || fail "registers are spilled: $bad"
! grep -hi warning "${reports[@]}" || fail "nvcc warns"
! ldd "$TRIB_BUILD/trib-perf" | grep -i cuda || fail "trib-perf needs CUDA to start"
echo "$names kernels for $targets targets without a spill"
