#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib metrics: printed and served, in both formats, as promtool wants them; counters are those of trib status; every query of the Grafana
# dashboard has data on a Prometheus server (tests/tools/dashboard_check.py).
. "$(dirname "$0")/lib.sh"
dashboard=$root/conf/grafana/tributary.json
trib metrics >"$tmp/none.out" 2>&1 || fail "no fabric: exit code $?"
[ "$(tail -n 1 "$tmp/none.out")" = '# EOF' ] || fail "no fabric: $(tail -n 3 "$tmp/none.out")"
trib up "$conf/leaf-spine-8.conf" --dilation 100 >"$tmp/up.out" || fail "no fabric"

# printed
trib perf "$conf/leaf-spine-8.conf" -b 64K -e 64K -n 50 --algo sharp --max-wall 4 >"$tmp/perf.out" 2>&1 || fail "perf: $(cat "$tmp/perf.out")"
trib metrics >"$tmp/open.out" || fail "openmetrics"
has '^tributary_link_bytes_total\{fabric="leaf-spine-8",link="h0:0-leaf0:0",from="h0:0",to="leaf0:0"\} [1-9]' "$tmp/open.out"
has '^# UNIT tributary_link_bytes bytes' "$tmp/open.out"
[ "$(grep -c '^tributary_link_up{.*} 1$' "$tmp/open.out")" = 24 ] || fail "links: $(grep -c '^tributary_link_up' "$tmp/open.out")"
sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$tmp/open.out" | sort | uniq -d >"$tmp/twice.out"
[ -s "$tmp/twice.out" ] && fail "a family twice"
trib metrics --format prometheus >"$tmp/text.out" || fail "prometheus"
if command -v promtool >/dev/null; then
    promtool check metrics <"$tmp/text.out" >"$tmp/promtool.out" 2>&1 || has_not 'error' "$tmp/promtool.out"
fi

# served, on a port that the system chooses; what cannot be is refused
"$TRIB_BUILD/trib-metrics" --listen 127.0.0.1:0 2>"$tmp/served.err" &
server=$!
told() { grep -q "^serving\|built without" "$tmp/served.err"; }
until_true 5 told || fail "--listen: $(cat "$tmp/served.err")"
if grep -q "built without" "$tmp/served.err"; then
    skip "printed only: $(cat "$tmp/served.err")"
fi
port=$(sed -n 's/^serving .* port \([0-9]*\) .*/\1/p' "$tmp/served.err")
get() { python3 -c 'import sys, urllib.request as u
r = u.urlopen(u.Request(sys.argv[1], headers={"Accept": sys.argv[2]}), timeout=5)
print(r.headers["Content-Type"]); sys.stdout.write(r.read().decode())' "http://127.0.0.1:$port$1" "$2"; }
get /metrics 'application/openmetrics-text' >"$tmp/get.out" || fail "GET /metrics"
[ "$(head -n 1 "$tmp/get.out")" = 'application/openmetrics-text; version=1.0.0; charset=utf-8' ] && [ "$(tail -n 1 "$tmp/get.out")" = '# EOF' ] || fail "GET: $(head -n 1 "$tmp/get.out")"
get /metrics text/plain >"$tmp/get.out" && has_not '^# EOF' "$tmp/get.out"
get /nothing text/plain >"$tmp/get.out" 2>&1 && fail "GET /nothing"
has '404' "$tmp/get.out"
for where in nowhere 1.2.3.4.5:9 127.0.0.1:99999 "127.0.0.1:$port"; do
    timeout 5 "$TRIB_BUILD/trib-metrics" --listen "$where" >"$tmp/bad.out" 2>&1 && fail "--listen $where"
    has "found --listen $where, expected ADDRESS:PORT|cannot listen at $where" "$tmp/bad.out"
done

# the dashboard, by a server of its own
if command -v prometheus >/dev/null; then
    cat >"$tmp/prometheus.yml" <<END
global: { scrape_interval: 500ms, scrape_timeout: 400ms }
scrape_configs: [ { job_name: tributary, static_configs: [ { targets: [ "127.0.0.1:$port" ] } ] } ]
END
    web=$((20000 + RANDOM % 20000))
    prometheus --config.file="$tmp/prometheus.yml" --storage.tsdb.path="$tmp/tsdb" --web.listen-address="127.0.0.1:$web" >"$tmp/prometheus.out" 2>&1 &
    prometheus=$!
    trib perf "$conf/leaf-spine-8.conf" -b 64K -e 64K -n 5000 --algo sharp --max-wall 12 >"$tmp/perf.out" 2>&1 &
    perf=$!
    all_there() { python3 "$root/tests/tools/dashboard_check.py" "$dashboard" "http://127.0.0.1:$web" leaf-spine-8 >"$tmp/dashboard.out" 2>&1; }
    until_true 15 all_there || fail "dashboard"
    kill $prometheus
    wait $prometheus 2>/dev/null
    wait $perf || fail "perf: $(cat "$tmp/perf.out")"
else
    echo "the dashboard's queries were skipped: no prometheus (scripts/setup.sh test)"
fi
kill $server
wait $server || fail "trib-metrics ended with $?"
