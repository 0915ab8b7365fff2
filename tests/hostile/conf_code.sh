#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A conf names code: the shared object of its protocol. Another user's conf, or one that leads to what others can write, runs nothing in
# the victim's programs: neither by path (trib sim, perf, model, up), nor for root on the fabric of a service that the attacker runs.
. "$(dirname "$0")/../e2e/lib.sh"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip "not root: no other users"
victim=65531 attacker=65532
. "$(dirname "$0")/lib_users.sh"
service=/run/tributary/th$$
services_were=$(ls -d /run/tributary 2>/dev/null)
cleanup() {
    TRIB_RUN=$service/th$$ XDG_RUNTIME_DIR='' as $attacker "$w/scripts/trib" down >/dev/null 2>&1
    rm -rf "$service"
    [ -n "$services_were" ] || rmdir /run/tributary 2>/dev/null
    end
}
trap cleanup EXIT
mkdir "$w/b" "$w/own" "$w/evil" "$w/open" "$w/group"
mkdir -m 1777 "$w/tmp"
install_in "$w/b"
chown $victim:$victim "$w/own" "$w/open" "$w/group"
chmod 777 "$w/open"
chown $attacker:$attacker "$w/evil"
as() { (cd "$w" && exec env TRIB_BUILD="$w/b" XDG_RUNTIME_DIR="$w/tmp" timeout -k 2 40 setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"); }

# The example with a constructor that notes who runs it.
{ cat "$root/examples/protocol/tally.c"; echo '#include <unistd.h>
#include <stdio.h>
__attribute__((constructor)) static void note(void)
{
    FILE *f = fopen(NOTE, "a");

    if (f)
        fprintf(f, "%u\n", (unsigned)geteuid()), fclose(f);
}'; } >"$tmp/code.c"
touch "$w/ran"
chmod 666 "$w/ran"
${CC:-cc} -w -shared -fPIC -DNOTE="\"$w/ran\"" -I"$root/include" "$tmp/code.c" -o "$tmp/code.so" || fail "the shared object"
put() { # FILE UID MODE: the shared object, and a conf beside it
    cp "$tmp/code.so" "$1" && chown "$2:$2" "$1" && chmod "$3" "$1" || exit 1
    conf_of "$1" >"${1%.so}.conf"
    chmod 644 "${1%.so}.conf"
}
conf_of() { sed "s|^reduce = .*|reduce = { protocol = \"${2:-./}${1##*/}\"; slots = 32; };|" "$root/conf/single-switch-4.conf"; }
put "$w/own/mine.so" $victim 755
put "$w/own/roots.so" 0 755
put "$w/evil/evil.so" $attacker 755
put "$w/own/all.so" $victim 757
put "$w/own/group.so" $victim 775
put "$w/open/open.so" $victim 755
ln -s "$w/evil/evil.so" "$w/own/link.so" && conf_of link.so >"$w/own/link.conf"
as $attacker ln -s "$w/own/mine.so" "$w/evil/mine.so" && conf_of mine.so >"$w/evil/mine.conf"
conf_of evil.so "$w/evil/" | tee "$w/own/away.conf" >"$w/evil/away.conf"
ran_by() { grep -qx "$1" "$w/ran"; }

# ---- what is to be trusted runs ----
for c in mine roots; do
    as $victim "$w/b/trib-sim" "$w/own/$c.conf" --algo tally -d int32 -b 4K -e 4K >"$tmp/v.out" 2>&1 || fail "$c.so: $(cat "$tmp/v.out")"
    ran_by $victim || fail "$c.so was not run: the test sees nothing"
    : >"$w/ran"
done

# ---- what is not, by each program that reads a conf ----
refused() { # TEXT CONF
    for cmd in "$w/b/trib-sim $2 --algo tally -d int32 -b 4K -e 4K" "$w/b/trib-perf --check $2 --algo tally -d int32" "$w/b/trib-switch $2" "$w/scripts/trib up $2"; do
        # shellcheck disable=SC2086
        as $victim $cmd >"$tmp/v.out" 2>&1 && fail "$2 is taken: $cmd"
        ran_by $victim && fail "the code of $2 was run: $cmd"
        grep -qE "$1" "$tmp/v.out" || fail "$cmd: says not /$1/: $(cat "$tmp/v.out")"
    done
}
refused "evil: found a directory of user $attacker" "$w/evil/evil.conf"
refused "evil: found a directory of user $attacker" "$w/evil/mine.conf"
refused "evil: found a directory of user $attacker" "$w/own/link.conf"
refused "evil: found a directory of user $attacker" "$w/own/away.conf"
refused "all.so: found a file of user $victim with mode 0757, expected" "$w/own/all.conf"
refused "group.so: found a file of user $victim with mode 0775, expected" "$w/own/group.conf"
refused "open: found a directory of user $victim with mode 0777" "$w/open/open.conf"

# ---- root on a service's fabric, whose conf names the service's own code ----
mkdir -p /run/tributary && mkdir -m 755 "$service" && chown $attacker:$attacker "$service" || fail "no $service"
export TRIB_RUN=$service/th$$
XDG_RUNTIME_DIR='' as $attacker "$w/scripts/trib" up "$w/evil/away.conf" >"$tmp/up.out" 2>&1 || fail "up: $(cat "$tmp/up.out")"
ran_by $attacker || fail "the service does not run its own code"
for conf in "$w/evil/away.conf" "$TRIB_RUN/fabric.conf"; do
    for cmd in perf status; do
        TRIB_BUILD=$w/b timeout -k 2 40 "$w/scripts/trib" $cmd $([ $cmd = status ] || echo "$conf" --algo tally -d int32 -b 4K -e 4K) >"$tmp/v.out" 2>&1
        rc=$?
        ran_by 0 && fail "root ran a service's code by trib $cmd $conf"
        [ $cmd = status ] || { [ $rc != 0 ] && has "found a directory of user $attacker|found a file of user $attacker" "$tmp/v.out"; } || fail "trib $cmd $conf: $rc $(cat "$tmp/v.out")"
    done
done
exit 0
