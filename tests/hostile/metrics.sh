#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients of trib metrics --listen that say nothing, say half of a request, say it a byte at a time, ask and do not read, or come and go,
# do not keep a scrape from its answer. Each holds more connections than the server has places.
. "$(dirname "$0")/../e2e/lib.sh"
"$TRIB_BUILD/trib-metrics" --listen 127.0.0.1:0 2>"$tmp/served.err" &
server=$!
told() { grep -q "^serving\|built without" "$tmp/served.err"; }
until_true 5 told || fail "--listen: $(cat "$tmp/served.err")"
! grep -q "built without" "$tmp/served.err" || skip "$(cat "$tmp/served.err")"
port=$(sed -n 's/^serving .* port \([0-9]*\) .*/\1/p' "$tmp/served.err")

cat >"$tmp/attack.py" <<'E2'
import socket, sys, time
how, n, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"
held = []

def connect():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", port))
    s.setblocking(False)
    if how in ("half", "trickle"):
        s.send(request)
    if how == "unread":
        s.send((request + b"\r\n") * 200)
    return s

while True:
    while len(held) < n:
        try:
            held.append(connect())
        except OSError:  # the backlog is full
            time.sleep(0.02)
            break
    time.sleep(0.02 if how == "hasty" else 0.2)
    alive = []
    for s in held:
        try:
            if how == "hasty":
                raise OSError
            if how == "trickle":
                s.send(b"X")
            if how == "unread" or s.recv(1):
                alive.append(s)
                if how == "unread":
                    s.getpeername()
        except BlockingIOError:
            alive.append(s)
        except OSError:
            s.close()
    held = alive
E2
scrape() { python3 -c 'import sys, urllib.request as u
assert u.urlopen(sys.argv[1], timeout=8).read().decode().startswith("#")' "http://127.0.0.1:$port/metrics"; }
scrape || fail "a scrape alone"
for how in "silent 16" "silent 60" "half 40" "trickle 40" "unread 40" "hasty 30"; do
    # shellcheck disable=SC2086
    python3 "$tmp/attack.py" $how "$port" 2>"$tmp/attack.out" &
    attack=$!
    sleep 1
    t0=$(date +%s%N)
    for i in 1 2 3; do scrape 2>"$tmp/scrape.out" || fail "$how: no answer: $(tail -n 1 "$tmp/scrape.out")"; done
    ms=$((($(date +%s%N) - t0) / 3000000))
    kill $attack 2>/dev/null || fail "$how: the attack has ended: $(cat "$tmp/attack.out")"
    wait $attack 2>/dev/null
    [ $ms -lt 3000 ] || fail "$how: a scrape took $ms ms"
    echo "$how: a scrape takes $ms ms"
done
# who says nothing is hung up on, also where nobody else comes
python3 -c 'import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.settimeout(20)
t = time.time(); assert s.recv(1) == b"" and time.time() - t < 15' "$port" || fail "a silent connection stays"
# one connection for many requests
python3 -c 'import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=5)
for i in range(50):
    c.request("GET", "/metrics"); r = c.getresponse(); assert r.status == 200 and r.read()' "$port" || fail "a connection that is kept"
kill $server
wait $server || fail "trib-metrics ended with $?"
