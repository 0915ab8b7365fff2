#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib exec: the program's view of /sys and /dev is its emulated host's and all else is as it was; it keeps pid, signals, exit code,
# stdin, directory; hosts by environment and by rank; nested; for an ordinary user; and where namespaces are forbidden.
# tier: core
. "$(dirname "$0")/lib.sh"
command -v ibv_devinfo >/dev/null || skip "no ibv_devinfo"

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
sys=/sys/class/infiniband/trib0
trib exec h0 -- true 2>"$tmp/notice.out" || fail "true"
grep -q 'no private /sys' "$tmp/notice.out" && skip "$(cat "$tmp/notice.out")"

# ---- the program's view ----
before=$(ls /dev /sys/class)
trib exec h2 -- sh -c "cat $sys/node_guid $sys/ports/1/gids/0 $sys/ports/1/gid_attrs/types/0 $sys/ports/1/rate" >"$tmp/sys.out" || fail "sysfs"
trib exec h2 -- ibv_devinfo -v >"$tmp/devinfo.out" || fail "ibv_devinfo"
has "node_guid:.*$(sed -n 1p "$tmp/sys.out")" "$tmp/devinfo.out"
[ "$(sed -n 2,4p "$tmp/sys.out" | tr '\n' ,)" = "0000:0000:0000:0000:0000:ffff:0a00:0003,RoCE v2,400 Gb/sec," ] || fail "$(cat "$tmp/sys.out")"
has '::ffff:10.0.0.3, RoCE v2' "$tmp/devinfo.out"
trib exec h2 -- sh -c 'test -c /dev/infiniband/trib0 && echo x >/dev/infiniband/trib0' || fail "the character device"
[ "$(trib exec h2 -- ls /dev /sys/class | grep -vx 'infiniband\|infiniband_verbs')" = "$(grep -vx 'infiniband\|infiniband_verbs' <<<"$before")" ] ||
    fail "/dev and /sys/class are not what they were"
for look in 'cat /sys/class/net/lo/mtu' 'stat -f -c %T /dev/pts /dev/shm' 'stat -c %A,%U,%t,%T /dev/null /dev/ptmx'; do
    [ "$(trib exec h2 -- sh -c "$look")" = "$(sh -c "$look")" ] || fail "$look: not what it was"
done
trib exec h2 -- sh -c 'echo x >/dev/null && head -c 4 /dev/zero >/dev/full' 2>/dev/null && fail "/dev/full takes bytes"
boot=/proc/sys/kernel/random/boot_id
ids=$(for h in h0 h1 h0; do trib exec $h -- cat $boot; done; cat $boot)
[ "$(sort -u <<<"$ids" | wc -l)" = "$([ "$(id -u)" = 0 ] && echo 3 || echo 4)" ] || fail "boot ids of h0, h1, h0 and the machine: $ids"
[ "$(ls /dev /sys/class)" = "$before" ] || fail "trib exec changes the machine"

# ---- a program that loads libibverbs itself, when it runs ----
for lib in libibverbs.so.1 "$(ldconfig -p 2>/dev/null | sed -n 's/.*libibverbs\.so\.1 .*=> //p' | head -n 1)"; do
    [ -z "$lib" ] || [ "$(trib exec h2 -- "$TRIB_BUILD/tests/tools/dlopen_check" "$lib" 2>&1)" = "trib0"$'\n'"1 devices, success" ] ||
        fail "dlopen(\"$lib\") and dlvsym do not find the emulated device"
done

# ---- a program that lost LD_PRELOAD gets a message, once; other programs get none ----
for lost in 'unset LD_PRELOAD; ibv_devices' 'env -i ibv_devices'; do
    trib exec h2 -- sh -c "PATH=$PATH; $lost" >"$tmp/lost.out" 2>&1
    [ "$(grep -c 'without libtribverbs.so in LD_PRELOAD' "$tmp/lost.out")" = 1 ] || fail "$lost: $(cat "$tmp/lost.out")"
done
trib exec h2 -- sh -c 'ibv_devices && ls /etc/libibverbs.d' >"$tmp/kept.out" 2>&1
has_not 'tributary:' "$tmp/kept.out"
[ "$(sed '1,/trib0/d' "$tmp/kept.out" | grep -v '^trib')" = "$(ls /etc/libibverbs.d)" ] || fail "the machine's drivers: $(cat "$tmp/kept.out")"

# ---- what passes through ----
here=$PWD
cd /dev/shm || fail "no /dev/shm"
[ "$(echo in | trib exec h0 -- sh -c 'cat; pwd; echo "$TRIB_HOST $A"; ls -d /dev/infiniband' | tr '\n' ' ')" = "in /dev/shm h0  /dev/infiniband " ] ||
    fail "stdin, directory or environment"
cd "$here" || exit 1
for sig in TERM INT USR1; do
    env --default-signal=INT "$root/scripts/trib" exec h0 -- sh -c "trap 'exit 42' $sig; echo \$\$ >$tmp/$sig; while :; do sleep 0.05; done" &
    until_true 10 test -s "$tmp/$sig" || fail "did not start"
    [ "$(cat "$tmp/$sig")" = $! ] || fail "the program's pid is not the one that was started"
    kill -$sig $!
    wait $!
    [ $? = 42 ] || fail "SIG$sig did not reach the program"
done
{ trib exec h0 -- sh -c 'kill -9 $$'; } 2>/dev/null
[ $? = 137 ] || fail "death by a signal is passed on"
trib exec h0 -- "$tmp/nothing" 2>"$tmp/none.out"
[ $? = 127 ] || fail "a program that does not exist: 127, as shells say"
has 'cannot run .*nothing' "$tmp/none.out"

# ---- which host ----
host='echo $TRIB_HOST $(cat /sys/class/infiniband/trib0/node_desc)'
[ "$(TRIB_HOST=h3 trib exec -- sh -c "$host")" = "h3 h3" ] || fail "TRIB_HOST"
[ "$(OMPI_COMM_WORLD_RANK=10 trib exec @rank -- sh -c "$host")" = "h2 h2" ] || fail "@rank of mpirun"
[ "$(SLURM_PROCID=5 trib exec @rank -- sh -c "$host")" = "h5 h5" ] || fail "@rank of srun"
[ "$(SLURM_PROCID=0 TORCHELASTIC_RUN_ID=1 RANK=6 trib exec @rank -- sh -c "$host")" = "h6 h6" ] || fail "@rank of torchrun below srun"
[ "$(WORLD_SIZE=8 RANK=3 trib exec @rank -- sh -c "$host")" = "h3 h3" ] || fail "@rank of torch by hand"
RANK=3 trib exec @rank -- true 2>"$tmp/rank.out" && fail "@rank of a RANK without a WORLD_SIZE"
has 'found no rank for @rank' "$tmp/rank.out"
[ "$(trib exec h1 -- "$root/scripts/trib" exec h6 -- sh -c "$host")" = "h6 h6" ] || fail "trib exec inside trib exec"
nested=$(trib exec h1 -- "$root/scripts/trib" exec h6 -- sh -c 'echo $LD_PRELOAD')
[ "$nested" = "$TRIB_BUILD/libtribverbs.so" ] || fail "preloaded: $nested"
for bad in "h9 -- true" "leaf0 -- true" "@rank -- true" "-- true" "h0 true" "h0 --"; do
    # shellcheck disable=SC2086
    trib exec $bad >"$tmp/bad.out" 2>&1 && fail "trib exec $bad is taken"
    has 'found .* expected' "$tmp/bad.out"
done

# ---- where namespaces are forbidden: a notice, and plain verbs programs run ----
if unshare --user --map-root-user true 2>/dev/null; then
    unshare --user --map-root-user sh -c 'for f in mnt user; do echo 0 >/proc/sys/user/max_${f}_namespaces; done
        exec "$@"' - "$root/scripts/trib" exec h0 -- ibv_devinfo >"$tmp/forbidden.out" 2>&1 || fail "without namespaces"
    has 'no private /sys and /dev for h0' "$tmp/forbidden.out"
    has 'PORT_ACTIVE' "$tmp/forbidden.out"
fi

# ---- an ordinary user ----
# not 65534, which is what an id without a map looks like
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || exit 0
trib down >/dev/null
dir=$(mktemp -d /tmp/tx.XXXXXX)
chmod 755 "$dir"
mkdir -p "$dir/b" "$dir/r"
cp "$TRIB_BUILD"/trib "$TRIB_BUILD"/trib-* "$TRIB_BUILD/libtribverbs.so" "$dir/b/"
cp -r "$root/scripts" "$root/conf" "$dir/"
chown -R 65533:65533 "$dir"
as_user() {
    (cd "$dir" && XDG_RUNTIME_DIR=$dir/r TRIB_BUILD=$dir/b setpriv --reuid 65533 --regid 65533 --clear-groups scripts/trib "$@")
}
as_user up conf/two-hosts.conf --dilation 1 >"$tmp/user.out" 2>&1
as_user exec h1 -- sh -c "id -u; id -g; cat $sys/node_desc; test -c /dev/infiniband/trib0 && echo x >/dev/infiniband/trib0
    ibv_devinfo | grep -c PORT_ACTIVE; mount -t tmpfs x /mnt 2>/dev/null && echo gained
    scripts/trib exec h0 -- cat $sys/node_desc; scripts/trib exec conf/two-hosts.conf h0 -- cat $sys/node_desc" >"$tmp/as_user.out" 2>&1
as_user down >/dev/null
rm -rf "$dir"
grep -q 'no private /sys' "$tmp/as_user.out" && ! setpriv --reuid 65533 --regid 65533 --clear-groups unshare --user --map-current-user --mount true 2>/dev/null &&
    skip "an ordinary user: $(grep 'no private' "$tmp/as_user.out")"
[ "$(tr '\n' ' ' <"$tmp/as_user.out")" = "65533 65533 h1 1 h0 h0 " ] || fail "an ordinary user: $(cat "$tmp/as_user.out")"
