#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rounding.sh [NAME]: plants bugs of rounding and of the order of sums, each alone in a copy of the tree (those with NAME in their name
# only), and expects the column #wrong of an ordinary row of `trib sim` to show each. Whole numbers, which are exact in every rounding and
# order, show none of them; the sampled elements of a row do (host/bench/verify/samples.h). A bug costs a compilation of one file. There are
# as many copies as cores, and a worker in each: a good minute on two.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD build=${BUILD:-build} filter=${1-} workers=$(nproc)
copies=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$copies"' EXIT
planted=0 missed=0 met=0

# in_copy FOLDER: goes into a new copy of the tree there, with the existing build, so that only files that a bug touches are compiled.
in_copy() {
    mkdir -p "$1/build" || return
    git ls-files --cached --others --exclude-standard | while read -r f; do [ ! -f "$f" ] || echo "$f"; done | tar -cf - -T - | tar -xf - -C "$1" || return
    (cd "$build" && find . -path ./tests -prune -o \( -name '*.[oad]' -o -name flags -o -name commit -o -name trib-sim -o -path './images/*' \) -print |
        tar -cf - --no-recursion -T -) | tar -xf - -C "$1/build" || return
    cd "$1" && make -s WARN=-w BUILD=build build/trib-sim
}

# missed_one TEXT
missed_one() {
    printf '%s\n' "$1"
    missed=$((missed + 1))
}

# plant NAME FILE TEXT REPLACEMENT CONF ARGS...: TEXT (fixed, within a line) is replaced wherever it is in FILE
plant() {
    local name=$1 file=$2 text=$3 instead=$4 wrong rc
    shift 4
    case $name in *"$filter"*) ;; *) return ;; esac
    met=$((met + 1))
    [ $((met % workers)) = "$worker" ] || return
    planted=$((planted + 1))
    grep -qF -- "$text" "$file" || { missed_one "$name: found no \"$text\" in $file"; return; }
    TEXT=$text INSTEAD=$instead awk '{ done = ""
        while ((i = index($0, ENVIRON["TEXT"]))) {
            done = done substr($0, 1, i - 1) ENVIRON["INSTEAD"]; $0 = substr($0, i + length(ENVIRON["TEXT"]))
        }
        print done $0 }' "$file" >planted
    cat planted >"$file"
    if ! make -s WARN=-w BUILD=build build/trib-sim >log 2>&1; then
        missed_one "$name: does not build: $(tail -n 3 log)"
    else
        timeout 60 build/trib-sim "$@" >out 2>&1
        rc=$?
        wrong=$(sed -n 's/^# Out of bounds values : \([0-9]*\) FAILED$/\1/p' out | head -n 1)
        if [ "$rc" = 1 ] && [ -n "$wrong" ]; then
            printf '%-58s %6s wrong\n' "$name" "$wrong"
        else
            missed_one "$(printf '%-58s NOT SEEN (exit %s) by trib sim %s' "$name" "$rc" "$*")"
        fi
    fi
    cp "$root/$file" "$file"
}

one="conf/single-switch-4.conf all_reduce -w 0 --algo sharp -b 65540 -e 65540" # four ranks at one node; not a whole number of vectors
short="conf/single-switch-4.conf all_reduce -w 0 --algo sharp -b 60 -e 60"     # less than a vector: the scalar row
three="conf/single-switch-4.conf all_reduce -w 0 --ranks 3 --algo ring -b 64K -e 64K"
# shellcheck disable=SC2086  # words
plant_all() { # those of this worker
local a=aggregation
# The rounding itself.
plant 'bfloat16 is truncated' $a/arith_ops.h 'return upper + ((ROW(u16))ROW_AVERAGE(lower, bias) >> 15);' 'return upper + 0 * (lower + bias);' $one -d bfloat16
plant 'bfloat16 rounds half away from zero' $a/arith_ops.h 'ROW(u16) bias = (upper & 1) | 0x7ffe;' 'ROW(u16) bias = (upper & 0) | 0x7fff;' $one -d bfloat16
plant 'half is truncated' $a/arith_isa.h _MM_FROUND_TO_NEAREST_INT _MM_FROUND_TO_ZERO $one -d half
plant 'half rounds up' $a/arith_isa.h _MM_FROUND_TO_NEAREST_INT _MM_FROUND_TO_POS_INF $one -d half
plant 'f8e4m3 rounds half away from zero' $a/narrow.c 'rest == unit / 2 && (q & 1)' 'rest == unit / 2' $one -d f8e4m3
plant 'f8e4m3 saturates' $a/narrow.c 'return n->over == n->nan ? n->nan : sign | n->over;' 'return sign | n->max;' $one -d f8e4m3
plant 'bfloat16 rounds twice, through half' $a/arith.c 'uint32_t u = f32_bits(f);' 'uint32_t u = f32_bits(fp16_to_fp32(fp32_to_fp16(f)));' $one -d bfloat16 -o avg
plant 'the mean of half rounds twice' $a/arith.c 'DIVIDE(e_uint16, float, fp16_to_fp32, (float)n, fp32_to_fp16);' \
    'DIVIDE(e_uint16, float, fp16_to_fp32, 2.0f, fp32_to_fp16); DIVIDE(e_uint16, float, fp16_to_fp32, (float)n / 2, fp32_to_fp16);' $three -d half -o avg
plant 'the mean is a product with the reciprocal' $a/arith.c 'a = (ACC)(a / (D));' 'a = (ACC)(a * (ACC)(1.0 / (D)));' \
    $three -d float -o avg
plant 'a sum of float in double' $a/arith_scalar.h 'SCALAR(sum_f32, e_uint32, float,' 'SCALAR(sum_f32, e_uint32, double,' $short -d float
plant 'a product of float in double' $a/arith_scalar.h 'SCALAR(prod_f32, e_uint32, float,' 'SCALAR(prod_f32, e_uint32, double,' $short -d float -o prod
# The order, and where it is rounded.
plant 'half is rounded at each input' switch/reduce/slot.c 'g->kernel(out + skip, src, g->n, bytes / g->elem);' \
    'for (unsigned i = 1; i < g->n; i++) g->kernel(out + skip, (const void *[]){i > 1 ? out + skip : src[0], src[i]}, 2, bytes / g->elem);' $one -d half
plant 'children in reverse order' switch/reduce/slot.c 'src[i] = in[i].data + skip;' 'src[g->n - 1 - i] = in[i].data + skip;' $one -d float
plant 'children in reverse order, in the last packet' switch/reduce/slot.c 'src[i] = in[i].data + skip;' \
    'src[bytes < g->mtu - AGG_HDR_BYTES ? g->n - 1 - i : i] = in[i].data + skip;' $one -d float
plant 'inputs in reverse order, in what is left of a vector' $a/arith_loops.h 'from[k] = (const uint8_t *)in[k] + at;' \
    'from[n - 1 - k] = (const uint8_t *)in[k] + at;' $one -d float
plant 'members of multimem in reverse order' switch/multimem/mm_load.c 'src[n++] = l->mem + (size_t)i * g->slice;' \
    '{ memmove(&src[1], &src[0], n++ * sizeof(*src)); src[0] = l->mem + (size_t)i * g->slice; }' conf/h100-node.conf all_reduce -w 0 --algo nvls -b 64K -e 64K
# Denormal numbers, NaNs, zeros.
plant 'denormal numbers are zero on the way in' $a/arith.c 'return f32_of(sign | f32_bits((float)man * 0x1p-24f));' 'return f32_of(sign);' $one -d f8e5m2
plant 'denormal numbers are zero on the way out' $a/narrow.c 'code = e < least ? q :' 'code = e < least ? 0 :' $one -d f8e4m3
if [ "$(uname -m)" = x86_64 ]; then
    plant 'the CPU flushes denormal numbers' $a/arith.c 'while (!arith_row_usable(widest))' '__builtin_ia32_ldmxcsr(0x9fc0); while (!arith_row_usable(widest))' $one -d float
fi
plant 'a NaN keeps its sign and payload' $a/arith_ops.h 'if (__builtin_expect(NAN_IN(*a, *b), 0))' 'if (0)' $one -d float
plant 'a NaN of f8e5m2 keeps its sign' $a/narrow.c 'return n->nan;' 'return sign | n->nan;' $one -d f8e5m2
plant 'the lesser of two zeros is the first' $a/arith_ops.h '| (tie & (ROW(bits))a));' ');' $one -d float -o min
plant 'the lesser of a NaN and a number is the number' $a/arith_ops.h '(a < b) | (a != a)' '(a < b)' $one -d float -o min
}
for ((worker = 0; worker < workers; worker++)); do
    (in_copy "$copies/$worker" || exit 2; plant_all; echo "$planted $missed" >"$copies/$worker.counts") &
done
for pid in $(jobs -p); do wait "$pid" || { echo "rounding.sh: found no build in a copy, or a worker that died" >&2; exit 2; }; done
read -r planted missed < <(cat "$copies"/*.counts | awk '{ planted += $1; missed += $2 } END { print planted, missed }')
echo "$planted planted, $missed not seen"
[ "$planted" -gt 0 ] && [ "$missed" = 0 ]
