#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job that needs more memory than the machine, a cgroup or ulimit -v has is refused at once, with the memory that it would need: in virtual time,
# connections and schedules included, and by ranks in real time. The prediction is right within half of the memory that the job takes.
. "$(dirname "$0")/lib.sh"
sim=$TRIB_BUILD/trib-sim

square() { # N: N leaves, N spines, N hosts a leaf
    echo "name = \"square-$1\"; leaf_spine = { leaves = $1; spines = $1; hosts_per_leaf = $1;
        host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"
}
for n in 8 32; do square $n >"$tmp/$n.conf"; done

# refused TEXT ARG...: within seconds, before anything runs
refused() {
    local text=$1 t0=$SECONDS
    shift
    (ulimit -v 6000000; timeout 60 "$sim" "$@" >"$tmp/refused.out" 2>&1)
    [ $? = 1 ] || fail "trib-sim $*: not refused"
    [ $((SECONDS - t0)) -le 10 ] || fail "trib-sim $*: refused after $((SECONDS - t0)) s"
    has "$text" "$tmp/refused.out"
    has_not '^#' "$tmp/refused.out"
}
both='found [0-9]+ MiB of (memory \(.*\)|addresses \(ulimit -v\)), expected about'
refused "$both [0-9]{5,}: .* 1047552 ends of connections" "$tmp/32.conf" alltoall --algo pairwise -g 1024 -b 2G -e 2G --payload none
refused "$both [0-9]{5,}: .* 1047552 ends of connections" "$tmp/32.conf" all_gather --algo direct -g 1024 -b 64K -e 64K --payload none
refused "$both [0-9]{4,}" "$tmp/8.conf" alltoall --algo pairwise -g 64 -b 256K -e 64M
refused "$both [0-9]{5,}" "$root/conf/h100-superpod-1024.conf" reduce_scatter --algo pairwise -g 512 -b 64K -e 64K --payload none
refused "addresses \(ulimit -v\), expected about 8[0-9]{3}:" "$root/conf/leaf-spine-8.conf" -b 64K -e 512M --payload none

# near FACTOR-TENTHS ARG...: what was expected, over what it took
near() {
    timeout 120 "$sim" "$@" --threads 1 --max-wall 60 >"$tmp/near.out" 2>"$tmp/near.err" || fail "trib-sim $*: $(tail -n 3 "$tmp/near.err")"
    sed -n 's/.* \([0-9]*\) MiB (about \([0-9]*\) expected).*/\1 \2/p' "$tmp/near.err" |
        awk -v what="$*" '{ r = $2 / $1; printf "%.2f of %d MiB: %s\n", r, $1, what; ok = r > 1 / 1.5 && r < 1.5 } END { exit !ok }' ||
        fail "expected and taken are more than half apart"
}
near "$tmp/8.conf" alltoall --algo pairwise -g 64 -b 64K -e 64K --payload none
near "$tmp/8.conf" alltoall --algo pairwise -g 64 -b 1M -e 1M -w 0 --place out
near "$tmp/32.conf" --algo ring -g 512 -b 8 -e 8 --payload none -w 0 --place out
near "$root/conf/h100-su.conf" --algo sharp -g 64 -b 64K -e 64K --payload none -w 0 --place out
near "$root/conf/leaf-spine-8.conf" --algo sharp,tree -b 1M -e 1M
# Pages of 2 MiB take what is not touched, too.
GLIBC_TUNABLES=glibc.malloc.hugetlb=1 near "$tmp/8.conf" alltoall --algo direct -g 64 -b 64K -e 64K --payload none

# real ranks
trib up "$root/conf/leaf-spine-8.conf" >"$tmp/up.out" 2>&1 || fail "up: $(cat "$tmp/up.out")"
trib perf leaf-spine-8.conf alltoall -b 1T -e 1T >"$tmp/perf.out" 2>&1
[ $? = 2 ] || fail "trib perf: not refused"
has 'found [0-9]+ MiB of memory \(.*\), expected about 1[67][0-9]{6} for the buffers and 56 connections of 8 ranks' "$tmp/perf.out"
(ulimit -v 400000; trib perf leaf-spine-8.conf all_reduce --algo ring -b 1M -e 256M >"$tmp/perf.out" 2>&1)
[ $? = 2 ] || fail "trib perf under ulimit -v: not refused: $(cat "$tmp/perf.out")"
has 'found [0-9]+ MiB of addresses \(ulimit -v\), expected about [0-9]+ for the buffers' "$tmp/perf.out"
trib down >/dev/null 2>&1
