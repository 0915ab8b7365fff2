#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tributary/coll.h as programs of others use it: both examples against an installed prefix, every call and result by coll_check, refusals
# by name, and a rank that dies.
# load: any
. "$(dirname "$0")/lib.sh"
command -v make >/dev/null && command -v pkg-config >/dev/null || skip "no make or no pkg-config"

make -C "$root" --no-print-directory -s -o all install BUILD="$TRIB_BUILD" PREFIX="$tmp/prefix" >"$tmp/install.out" 2>&1 ||
    fail "make install: $(tail -n 5 "$tmp/install.out")"
export PKG_CONFIG_PATH=$tmp/prefix/lib/pkgconfig LD_LIBRARY_PATH=$tmp/prefix/lib
cp -r "$tmp/prefix/share/tributary/examples/coll" "$tmp/mine"
make -s -C "$tmp/mine" CFLAGS='-O2 -Wall -Wextra -Werror' >"$tmp/make.out" 2>&1 || fail "make of the example: $(cat "$tmp/make.out")"
check=$TRIB_BUILD/tests/tools/coll_check

# ranks CONF N COMMAND...: the command on the first N of $hosts, with an address of its own, rank and size; output in ranks.out; 0: all did well
port=0
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
ranks() {
    local fabric=$1 n=$2 program=$3 host r=0 rc=0 pids=()
    shift 3
    port=$(free_port)
    # shellcheck disable=SC2086
    for host in $(printf '%s\n' $hosts | head -n "$n"); do
        timeout 90 "$root/scripts/trib" exec "$fabric" "$host" -- "$program" "127.0.0.1:$port" $r "$n" "$@" >"$tmp/rank$r.out" 2>&1 &
        pids+=($!)
        r=$((r + 1))
    done
    [ "$r" = "$n" ] || fail "$fabric: found $r hosts, expected $n"
    for r in "${pids[@]}"; do wait "$r" || rc=$?; done
    for ((r = 0; r < n; r++)); do cat "$tmp/rank$r.out"; done >"$tmp/ranks.out" # a file each: lines of several would mix
    return "$rc"
}

trib up leaf-spine-8 >/dev/null || fail up
hosts=$(echo h{0..7})
ranks leaf-spine-8 8 "$tmp/mine/all_reduce" || fail "all_reduce: $(cat "$tmp/ranks.out")"
[ "$(grep -c '1048576 sums, by sharp' "$tmp/ranks.out")" = 8 ] || fail "all_reduce: $(cat "$tmp/ranks.out")"
ranks leaf-spine-8 8 "$tmp/mine/all_reduce.py" || fail "all_reduce.py: $(cat "$tmp/ranks.out")"
[ "$(grep -c '100000 sums, by sharp' "$tmp/ranks.out")" = 8 ] || fail "all_reduce.py: $(cat "$tmp/ranks.out")"
ranks leaf-spine-8 2 "$tmp/mine/train.py" || fail "train.py: $(cat "$tmp/ranks.out")"
[ "$(grep -cE 'step [0-4]: computes [0-9.]+ us \(lag [0-9.]+ us\), communicates [0-9.]+ us' "$tmp/ranks.out")" = 5 ] || fail "train.py: $(cat "$tmp/ranks.out")"
for algo in sharp,ring auto; do
    ranks leaf-spine-8 8 "$check" "$algo" || fail "coll_check $algo: $(cat "$tmp/ranks.out")"
    [ "$(grep -c "operations, $algo" "$tmp/ranks.out")" = 8 ] || fail "coll_check $algo: $(cat "$tmp/ranks.out")"
done
ranks leaf-spine-8 4 "$check" sharp,ring starve || fail "without descriptors: $(cat "$tmp/ranks.out")"
has_not 'Too many' "$tmp/ranks.out"
reduced=$(trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in)
[ "$reduced" -gt $((8 * 1048576)) ] || fail "leaf0 has reduced $reduced bytes"
ranks leaf-spine-8 8 "$check" sharp die 3 && fail "a rank was killed, and nobody saw it"
[ "$(grep -c 'rank 3 (h3) missing' "$tmp/ranks.out")" = 7 ] || fail "a death: $(cat "$tmp/ranks.out")"

# No switch misses the rank here: connections alone would find out after a minute of retries.
trib down leaf-spine-8 >/dev/null
trib up leaf-spine-8 --dilation 100 >/dev/null || fail "up at 100"
ranks leaf-spine-8 4 "$check" ring die 3 && fail "a rank was killed, and nobody saw it"
[ "$(grep -c 'rank 3 (h3): its process has ended' "$tmp/ranks.out")" = 3 ] || fail "a death at 100: $(cat "$tmp/ranks.out")"
trib down leaf-spine-8 >/dev/null
# A leaf's process: every rank names it. Half of the ranks' own NICs live with it.
for algo in sharp ring; do
    trib up leaf-spine-8-procs --dilation 100 >/dev/null || fail "up with a process for each switch"
    leaf1=$(pids_in "$run/leaf-spine-8-procs/proc/leaf1.pid") began=$SECONDS
    ranks leaf-spine-8-procs 8 "$check" "$algo" kill "$leaf1" || fail "a leaf's death: $(cat "$tmp/ranks.out")"
    [ $((SECONDS - began)) -le 10 ] || fail "$algo: $((SECONDS - began)) s until all ranks knew of a leaf's death"
    [ "$(grep -cE "^rank [0-7]: .*trib-switch leaf1 \(pid $leaf1, nodes .*leaf1\) has died: killed by signal 9" "$tmp/ranks.out")" = 8 ] ||
        fail "a leaf's death: $(cat "$tmp/ranks.out")"
    trib down leaf-spine-8-procs >/dev/null
done
trib up leaf-spine-8 >/dev/null || fail up

# Every rank says why, the one without a mistake too.
ranks leaf-spine-8 2 "$check" nonsense && fail "an algorithm that does not exist"
[ "$(grep -c "refused: algo: found 'nonsense', expected auto or a list" "$tmp/ranks.out")" = 2 ] || fail "$(cat "$tmp/ranks.out")"
port=$(free_port)
trib exec h0 -- "$check" "127.0.0.1:$port" 0 2 ring >"$tmp/good.out" 2>&1 &
good=$!
trib exec h1 -- "$check" "127.0.0.1:$port" 1 2 ring,ring >"$tmp/bad.out" 2>&1
wait $good
has 'refused: rank 1: algo: found ring twice' "$tmp/good.out"
# One that cannot create its part of the communicator: nobody waits for it.
ranks leaf-spine-8 4 "$check" ring broken 2 && fail "a rank without a completion queue"
[ "$(grep -c 'refused: rank 2 (h2): ' "$tmp/ranks.out")" = 4 ] || fail "a rank without a completion queue: $(cat "$tmp/ranks.out")"
# One whose fabric is not there.
port=$(free_port)
timeout 60 "$root/scripts/trib" exec h0 -- "$check" "127.0.0.1:$port" 0 2 ring >"$tmp/good.out" 2>&1 &
good=$!
TRIB_RUN=$tmp/nowhere TRIB_HOST=h1 timeout 60 "$check" "127.0.0.1:$port" 1 2 ring >"$tmp/bad.out" 2>&1
wait $good
has 'refused: rank 1: cannot open the run directory .*nowhere' "$tmp/good.out"
has 'refused: cannot open the run directory .*nowhere' "$tmp/bad.out"

# and a rank whose conf gives it other trees than rank 0 has
trib up two-hosts >/dev/null || fail "up two-hosts"
port=$(free_port)
timeout 60 "$root/scripts/trib" exec two-hosts h0 -- "$check" "127.0.0.1:$port" 0 2 sharp,ring >"$tmp/good.out" 2>&1 &
good=$!
timeout 60 "$root/scripts/trib" exec leaf-spine-8 h1 -- "$check" "127.0.0.1:$port" 1 2 sharp,ring >"$tmp/bad.out" 2>&1 && fail "ranks with other trees"
wait $good && fail "ranks with other trees"
for f in good bad; do has 'refused: rank 1 \(h1\): found aggregation trees 0, 1, expected 0, which rank 0 has by its conf' "$tmp/$f.out"; done
trib down two-hosts >/dev/null || fail "down two-hosts"
# Outside of a fabric, and where nobody comes.
"$tmp/mine/all_reduce" "127.0.0.1:$(free_port)" 0 1 >"$tmp/outside.out" 2>&1 && fail "without a fabric"
has 'found no TRIB_RUN and TRIB_HOST, expected .* trib exec CONF HOST' "$tmp/outside.out"
"$tmp/mine/all_reduce" here 0 2 >"$tmp/address.out" 2>&1 && fail "an address without a port"
has "found 'here', expected ADDRESS:PORT" "$tmp/address.out"
python3 - "$(free_port)" >"$tmp/store.out" 2>&1 <<'EOF' || fail "the store: $(cat "$tmp/store.out")"
import ctypes, sys, threading, time, socket
trib, err = ctypes.CDLL("libtributary.so.1"), ctypes.create_string_buffer(256)
def open_store(rank, size, seconds, err=err, address="127.0.0.1:" + sys.argv[1]):
    return trib.trib_store_open(ctypes.byref(ctypes.c_void_p()), address.encode(), rank, size, ctypes.c_double(seconds), err)
assert open_store(0, 4, 0.3) < 0 and err.value == b"store: ranks that have not connected: 1, 2, 3", err.value
assert open_store(1, 2, 0.2) < 0 and b"rank 1 cannot reach rank 0: Connection refused" in err.value, err.value
assert open_store(2, 2, 1) < 0 and b"found rank 2 of 2" in err.value, err.value
assert open_store(0, 2, 0) < 0 and b"found a timeout of 0 s" in err.value, err.value
assert open_store(0, 2, 1, address="[::1:5") < 0 and b"expected ADDRESS:PORT" in err.value, err.value
# Somebody who is no rank is hung up on, and the ranks still meet.
first = threading.Thread(target=lambda: results.append(open_store(0, 2, 10, ctypes.create_string_buffer(256))))
results = []
first.start()
stranger = None
while stranger is None and first.is_alive():  # rank 0 listens soon, or gives up after its 10 s
    try:
        stranger = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    except ConnectionRefusedError:
        time.sleep(0.01)
assert stranger, "rank 0 never listened"
stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
assert open_store(1, 2, 10) == 0, err.value
first.join()
assert results == [0], results
EOF
trib down leaf-spine-8 >/dev/null

# NVSwitches read and write buffers themselves: memory that is freed and used again is bound again.
trib up rail-2x4 >/dev/null || fail "up rail-2x4"
hosts=$(echo n0g{0..3})
ranks rail-2x4 4 "$check" nvls,ring || fail "coll_check nvls: $(cat "$tmp/ranks.out")"
