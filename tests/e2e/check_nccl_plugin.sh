#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib check-nccl-plugin: a plug-in of the tests that is right passes every case of every table; each of its planted bugs is found by the case
# and with the words that tests/fake/nccl_net/plants.txt says; files that are no plug-in are refused;
# Tributary's own passes on hosts of a fabric.
# load: any
. "$(dirname "$0")/lib.sh"
check=$TRIB_BUILD/trib-check-nccl-plugin
mock=$TRIB_BUILD/tests/fake/libnccl-net-mock.so
plants=$root/tests/fake/nccl_net/plants.txt

# ---- files that are none ----
refused() { # refused TEXT FILE
    timeout 30 "$check" "$2" >"$tmp/refused.out" 2>&1
    [ $? = 2 ] || fail "$2: expected exit code 2: $(cat "$tmp/refused.out")"
    has "^trib-check-nccl-plugin: .*$1" "$tmp/refused.out"
}
refused 'No such file or directory' "$tmp/none.so"
refused 'found a file that is no ELF object' "$plants"
refused 'found a directory, expected a shared object' "$tmp/"
mkfifo "$tmp/fifo.so"
refused 'found a FIFO, expected a shared object' "$tmp/fifo.so"
refused 'found neither of ncclNetPlugin_v8 to _v12 and ncclCollNetPlugin_v8 to _v12, expected one of them' libm.so.6

# ---- Tributary's own, on a fabric, beside the others ----
(timeout 200 "$root/scripts/trib" check-nccl-plugin -c leaf-spine-8 --dilation 20 --strict --tables net-v8,coll-v12 --cases '[!k]*' \
    "$TRIB_BUILD/libnccl-net-tributary.so" >"$tmp/own.out" 2>&1; echo $? >"$tmp/own.rc") &
own=$!

# ---- the right one, by each table, and every planted bug ----
clean() { # clean TABLE: a line if it is not right
    timeout 200 "$check" --strict --tables "$1" "$mock" >"$tmp/clean.$1.out" 2>&1 && grep -qE '^libnccl-net-mock.so: ([0-9]+) of \1 cases$' "$tmp/clean.$1.out" &&
        ! grep -qE 'skipped|FAILED' "$tmp/clean.$1.out" || echo "the right plug-in: $1: $(cat "$tmp/clean.$1.out")"
}
# plant NAME TABLE CASE TEXT...: a line of what was not found
plant() {
    local name=$1 table=$2 case=$3 rc out=$tmp/plant.$1 soon=()
    [ "$name" != - ] || { clean "$table"; return; }
    shift 3
    if [ "$case" = - ]; then
        MOCK_PLANT=$name timeout 100 "$check" "$mock" >"$out" 2>&1
        rc=$?
        [ $rc = 2 ] && grep -qE -- "$*" "$out" || echo "$name: exit code $rc: $(tail -n 3 "$out")"
        return
    fi
    # what hangs is not waited for as long as usual
    [[ $* != *"found no end"* ]] || soon=(--timeout 4)
    [[ $* != *"killed 2 s ago"* ]] || soon=(--dead 2)
    MOCK_PLANT=$name timeout 100 "$check" --strict --tables "$table" --cases "$case" "${soon[@]}" "$mock" >"$out" 2>&1
    rc=$?
    [ $rc = 1 ] && grep -E "^(net|coll)-v[0-9]+ +$case +FAILED" "$out" | grep -qE -- "$*" || echo "$name: exit code $rc: $(cat "$out")"
}
export -f clean plant
export check mock tmp
{
    printf -- '- %s\n' net-v{8..12} coll-v{8..12}
    grep -v '^#' "$plants"
} | tr '\n' '\0' | xargs -0 -P 8 -I{} bash -c 'read -r -a words <<<"$1"; plant "${words[@]}"' _ {} >"$tmp/missed.out"
n=$(grep -vc '^#' "$plants")
[ -s "$tmp/missed.out" ] && fail "not right, or not found of $n planted bugs: $(cat "$tmp/missed.out")"
for t in net-v{8..12}; do [ "$(grep -c ' ok$' "$tmp/clean.$t.out")" -ge 33 ] || fail "$t: found too few cases"; done
for t in coll-v{8..12}; do [ "$(grep -c ' ok$' "$tmp/clean.$t.out")" -ge 20 ] || fail "$t: found too few cases"; done
[ "$n" -ge 140 ] || fail "found $n planted bugs, expected 140"
# Every one that the plug-in has is planted here, but for a leak, which a sanitizer finds (tests/plugins/check).
grep -ohE 'planted\("[^"]*' "$root"/tests/fake/nccl_net/*.c | sed 's/.*"//' | grep -vx close-leaks | sort -u >"$tmp/has"
grep -v '^#' "$plants" | cut -d' ' -f1 | sort -u | diff "$tmp/has" - >"$tmp/diff.out" || fail "plants: $(cat "$tmp/diff.out")"

# ---- Tributary's own ----
wait $own
[ "$(cat "$tmp/own.rc")" = 0 ] || fail "Tributary's plug-in: exit code $(cat "$tmp/own.rc"): $(grep -v ' ok$' "$tmp/own.out")"
has '^libnccl-net-tributary.so: ([0-9]+) of \1 cases$' "$tmp/own.out"
[ ! -e "$run/leaf-spine-8" ] || fail "the fabric was left up"
# A signal ends ranks and takes the fabric down.
TRIB_COMMAND=$root/scripts/trib "$check" -v -c leaf-spine-8 --tables net-v8 "$TRIB_BUILD/libnccl-net-tributary.so" >"$tmp/stopped.out" 2>&1 &
until_true 30 test -e "$run/leaf-spine-8/port" || fail "no fabric: $(cat "$tmp/stopped.out")"
kill -TERM $! && wait $!
rc=$?
[ $rc = 143 ] || fail "a signal: exit code $rc, expected 143: $(cat "$tmp/stopped.out")"
[ ! -e "$run/leaf-spine-8" ] || fail "the fabric was left up after a signal"
# Without its hosts it has no device, as its first case says.
timeout 60 "$check" --tables net-v9 "$TRIB_BUILD/libnccl-net-tributary.so" >"$tmp/alone.out" 2>&1
[ $? = 1 ] || fail "Tributary's plug-in without a fabric: expected exit code 1"
has '^net-v9 +init +FAILED +rank [01]: devices: found 0, expected one or more$' "$tmp/alone.out"
has '^net-v9 +sizes +skipped +init has failed$' "$tmp/alone.out"
echo "found each of $n planted bugs"
