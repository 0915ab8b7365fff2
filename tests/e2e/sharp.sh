#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# SHARP's interface as UCC and NVIDIA's NCCL plug-in call it: exact, in the switches; refusals by number and reason; a rank that dies;
# what is installed compiles and links as --with-sharp=DIR wants it.
. "$(dirname "$0")/lib.sh"
export LD_LIBRARY_PATH=$TRIB_BUILD

# ranks FABRIC N COMMAND...: the command on hosts h0, h1, ... with an address of its own, rank and size; output in ranks.out
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
ranks() {
    local fabric=$1 n=$2 program=$3 r rc=0 pids=() port
    shift 3
    port=$(free_port)
    : >"$tmp/ranks.out"
    for ((r = 0; r < n; r++)); do
        timeout 60 "$root/scripts/trib" exec "$fabric" "h$r" -- "$TRIB_BUILD/tests/tools/$program" "127.0.0.1:$port" $r "$n" "$@" >>"$tmp/ranks.out" 2>&1 &
        pids+=($!)
    done
    for r in "${pids[@]}"; do wait "$r" || rc=$?; done
    return "$rc"
}
# all N TEXT: so many ranks say it
all() { [ "$(grep -cE -- "$2" "$tmp/ranks.out")" = "$1" ] || fail "expected $1 times /$2/: $(cat "$tmp/ranks.out")"; }

trib up leaf-spine-8 --dilation 20 >/dev/null || fail up
SHARP_COLL_STATS_DUMP_MODE=1 ranks leaf-spine-8 8 sharp_check || fail "sharp_check: $(cat "$tmp/ranks.out")"
all 8 'operations exact'
all 8 'rank [0-7]: [0-9]+ reduce_scatter, [0-9]+ bytes, 0 calls by hosts'
all 16 'rank [0-7]: [0-9]+ allreduce, [0-9]+ bytes, 0 calls by hosts' # of two contexts
reduced=$(trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in)
[ "$reduced" -gt 3000000 ] || fail "leaf0 has reduced $reduced bytes"
ranks leaf-spine-8 8 sharp_check die 3 && fail "a rank was killed, and nobody saw it"
all 7 'error: allreduce: rank [0-7]: .*rank 3 \(h3\) missing'
all 7 'rank [0-7]: -1, an operation has failed'

ranks leaf-spine-8 2 sharp_bad || fail "sharp_bad: $(cat "$tmp/ranks.out")"
all 2 'rank [01]: [0-9]+ refusals'
ranks leaf-spine-8 2 sharp_bad job || fail "jobs that differ: $(cat "$tmp/ranks.out")"
all 2 'error: init: rank 1 of the job: found job 1, rank 1 of 2, expected job 0'
all 2 'rank [01]: -11, '
ranks leaf-spine-8 2 sharp_bad oob || fail "an out-of-band failure: $(cat "$tmp/ranks.out")"
all 2 'error: comm_init: rank [01] of 2: an out-of-band call has failed'
all 2 'rank [01]: -15, '
SHARP_COLL_OSTS_PER_GROUP=1 ranks leaf-spine-8 2 sharp_bad comm || fail "one slot: $(cat "$tmp/ranks.out")"
all 2 'error: comm_init: .*less than one message takes'
all 2 'rank [01]: -20, '
# Hidden as UCC asks for it, unless the user has asked for a level.
SHARP_COLL_OSTS_PER_GROUP=1 ranks leaf-spine-8 2 sharp_bad hidden || fail "hidden: $(cat "$tmp/ranks.out")"
all 0 'less than one message takes'
SHARP_COLL_OSTS_PER_GROUP=1 SHARP_COLL_LOG_LEVEL=2 ranks leaf-spine-8 2 sharp_bad hidden || fail "hidden at a level: $(cat "$tmp/ranks.out")"
all 2 'error: comm_init: .*less than one message takes'
ranks leaf-spine-8 8 sharp_bad many || fail "several communicators: $(cat "$tmp/ranks.out")"
all 8 'rank [0-7]: 16 communicators more'
SHARP_COLL_ENABLE_SAT=maybe ranks leaf-spine-8 2 sharp_bad comm || fail "a bad variable: $(cat "$tmp/ranks.out")"
all 2 "error: init: .*SHARP_COLL_ENABLE_SAT: found 'maybe', expected 0 to 1"
all 2 'rank [01]: -10, '
trib down leaf-spine-8 >/dev/null
sed -e 's/leaf-spine-8/plain/' -e '/^reduce/d' "$conf/leaf-spine-8.conf" >"$tmp/plain.conf"
trib up "$tmp/plain.conf" --dilation 20 >/dev/null || fail "up without aggregation nodes"
ranks plain 2 sharp_bad comm || fail "without aggregation nodes: $(cat "$tmp/ranks.out")"
all 2 'error: comm_init: rank [01] of 2: found no aggregation node that reaches all ranks'
all 2 'rank [01]: -13, '
trib down plain >/dev/null

# Without a fabric, against what is installed; nothing shadows a system's library.
command -v make >/dev/null || skip "no make for the installed library; the rest has passed"
make -C "$root" --no-print-directory -s -o all install BUILD="$TRIB_BUILD" PREFIX="$tmp/prefix" >"$tmp/install.out" 2>&1 ||
    fail "make install: $(tail -n 5 "$tmp/install.out")"
unset LD_LIBRARY_PATH
dir=$tmp/prefix/lib/tributary/sharp
[ ! -e "$tmp/prefix/lib/libsharp_coll.so" ] || fail "it is where a system's library is found"
cat >"$tmp/alone.c" <<'END'
#include <sharp/api/sharp.h>
static int none(void *c) { (void)c; return 0; }
static int bcast(void *c, void *b, int n, int r) { (void)c, (void)b, (void)n, (void)r; return 0; }
static int gather(void *c, int r, void *s, void *t, int n) { (void)c, (void)r; __builtin_memcpy(t, s, n); return 0; }
int main(void)
{
    struct sharp_coll_init_spec s = {.world_size = 1, .config = sharp_coll_default_config, .oob_colls = {bcast, none, gather}};
    struct sharp_coll_context *c;
    int rc = sharp_coll_init(&s, &c);
#if SHARP_API > SHARP_VERSION(3, 6)
    printf("%d, %s\n", rc, sharp_coll_strerror(rc));
#endif
    return sharp_coll_print_config(stdout, SHARP_COLL_CONFIG_PRINT_HEADER | SHARP_COLL_CONFIG_PRINT_DOC, "alone");
}
END
"${CC:-cc}" -Wall -Wextra -Werror -I"$dir/include" "$tmp/alone.c" -L"$dir/lib" -lsharp_coll -Wl,-rpath,"$dir/lib" -Wl,-rpath-link,"$tmp/prefix/lib" -o "$tmp/alone" \
    >"$tmp/cc.out" 2>&1 || fail "a program against $dir: $(cat "$tmp/cc.out")"
"$tmp/alone" >"$tmp/alone.out" 2>&1 || fail "a program without a fabric: $(cat "$tmp/alone.out")"
has 'error: init: found no RDMA device, expected the emulated one: is the program run by trib exec\?' "$tmp/alone.out"
has '^-8, this process runs on no fabric' "$tmp/alone.out"
has '^SHARP_COLL_OSTS_PER_GROUP=0' "$tmp/alone.out"
