#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Verbs programs that are built with sanitizers run under `trib exec`, started by it, by a script with options of its own, or with the
# runtime in LD_PRELOAD; what the sanitizer is for is still found, and nothing else is.
# load: any
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || skip "no gcc"
cat >"$tmp/p.c" <<'END'
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int shared;
static void *count(void *a) { shared++; return a; }
#ifdef OWN_OPTIONS
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif
int main(int argc, char **argv)
{
    char what = argc > 1 ? argv[1][0] : 0;
    volatile char *b = malloc(64);
    int n = 0;
    struct ibv_device **l = ibv_get_device_list(&n);
    struct ibv_context *c = n ? ibv_open_device(l[0]) : NULL;
    struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, (void *)b, 64, 0) : NULL;
    pthread_t t;
    if (what == 'o')
        b[64 + (argc > 5)] = 1;
    if (what == 'r') {
        pthread_create(&t, NULL, count, NULL);
        shared++;
        pthread_join(t, NULL);
    }
    if (!mr || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || ibv_close_device(c))
        return 9;
    ibv_free_device_list(l);
    free((void *)b);
    puts("a region and no more");
    return 0;
}
END
trib up "$conf/two-hosts.conf" >/dev/null || fail "no fabric"

# good NAME CMD...: it runs and nothing is reported. bad NAME REPORT CMD...: the report is there
good() {
    local name=$1
    shift
    trib exec h0 -- timeout 60 "$@" >"$tmp/good.out" 2>&1 || fail "$name ended with $?: $(cat "$tmp/good.out")"
    has '^a region and no more' "$tmp/good.out"
    has_not 'Sanitizer|WARNING|ERROR' "$tmp/good.out"
    runs=$((runs + 1))
}
bad() {
    local name=$1 report=$2
    shift 2
    trib exec h0 -- timeout 60 "$@" >"$tmp/bad.out" 2>&1 && fail "$name: its fault was not found"
    has "$report" "$tmp/bad.out"
}
runs=0
build() { # NAME CC ARG...
    local name=$1
    shift
    command -v "$1" >/dev/null && "$@" -g "$tmp/p.c" -o "$tmp/$name" -libverbs -lpthread >"$tmp/cc.out" 2>&1
}

if build asan gcc -fsanitize=address; then
    good asan "$tmp/asan"
    bad asan heap-buffer-overflow "$tmp/asan" o
    printf '#!/bin/sh\nASAN_OPTIONS=detect_leaks=1 "$@"\n' >"$tmp/script" && chmod +x "$tmp/script"
    good "a script's child with options" "$tmp/script" "$tmp/asan"
    runtime=$(ldd "$tmp/asan" | awk '/libasan/ { print $3 }')
    (export LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 && trib exec h0 -- "$tmp/asan") >"$tmp/preload.out" 2>&1 ||
        fail "with the runtime in LD_PRELOAD: $(cat "$tmp/preload.out")"
    has '^a region and no more' "$tmp/preload.out"
    build own gcc -fsanitize=address -DOWN_OPTIONS && good "options built in" "$tmp/own"
fi
build asan-ubsan gcc -fsanitize=address,undefined && good asan-ubsan "$tmp/asan-ubsan"
build lsan gcc -fsanitize=leak && good lsan "$tmp/lsan"
build ubsan gcc -fsanitize=undefined && good ubsan "$tmp/ubsan"
if build tsan gcc -fsanitize=thread && ! setarch -R "$tmp/tsan" 2>&1 | grep -q 'unexpected memory mapping'; then
    good tsan setarch -R "$tmp/tsan"
    bad tsan 'data race' setarch -R "$tmp/tsan" r
fi
for cc in clang clang-14; do
    dir=$($cc -print-resource-dir 2>/dev/null)/lib/linux
    build clang-asan $cc -fsanitize=address -shared-libasan -Wl,-rpath,"$dir" && good "$cc, shared runtime" "$tmp/clang-asan" && break
done
[ "$runs" -gt 0 ] || skip "no sanitizer's runtime: $(tail -n 1 "$tmp/cc.out")"
echo "$runs programs"
