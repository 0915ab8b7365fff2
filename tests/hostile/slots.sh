#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process that connects to all process slots of other hosts, says nothing there or has no token, does not keep their own processes
# out. It is refused by name and counted.
. "$(dirname "$0")/../e2e/lib.sh"

name=slots
sed -e 's/leaf-spine-8/slots/' -e '1i slots_per_host = 4;' "$conf/leaf-spine-8.conf" >"$tmp/slots.conf"
grep -q '^slots_per_host' "$tmp/slots.conf" || fail "no conf"
trib up "$tmp/slots.conf" --dilation 4000 >/dev/null || fail "no fabric"
pid=$(head -n 1 "$run/$name/proc/fabric.pid")
"$TRIB_BUILD/tests/hostile/slots" "$run/$name" h0 4 30 >"$tmp/one.out" &
one=$!
"$TRIB_BUILD/tests/hostile/slots" "$run/$name" h1 4 30 >"$tmp/two.out" &
two=$!
sleep 0.5
perf_ok job "$tmp/slots.conf" -g 2 --algo ring -b 4K -e 4K -n 2 --max-wall 10
kill $one $two
wait $one $two 2>/dev/null
kill -0 "$pid" || fail "the switch process has ended"
trib status >"$tmp/status.out"
has 'refused_connections: [1-9]' "$tmp/status.out"
has "h[01]\.0\.[0-3]: refused the connection of process ($one|$two): it (does not have this host's token|did not finish its connection)" \
    "$run/$name/proc/fabric.log"
[ "$(grep -c 'refused the connection' "$run/$name/proc/fabric.log")" -lt 40 ] || fail "more than a line a second of refusals"

# A program has the token as a descriptor, which is one of its host; without it and without the file it is refused.
trib exec h2 -- sh -c 'cmp /proc/self/fd/$TRIB_TOKEN '"$run/$name/port/h2/host.token" 2>"$tmp/token.out" || fail "no token was handed over"
mv "$run/$name/port/h2/host.token" "$tmp/h2.token"
cp "$run/$name/port/h3/host.token" "$run/$name/port/h2/host.token"
trib exec h2 -- ibv_devinfo >"$tmp/wrong.out" 2>&1 # opens the device
has 'h2: the NIC refuses this process: ' "$tmp/wrong.out"
grep -q 'h2\.0\.0: refused.*token' "$run/$name/proc/fabric.log" || fail "another host's token was taken"
mv "$tmp/h2.token" "$run/$name/port/h2/host.token"
trib down >/dev/null || fail "down"
