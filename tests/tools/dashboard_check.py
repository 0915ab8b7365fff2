#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks a Prometheus server for every query of a Grafana dashboard: dashboard_check.py DASHBOARD URL FABRIC. Each must give series with
finite values. Queries see the dashboard's variables as Grafana fills them in."""
import json
import math
import sys
import urllib.parse
import urllib.request

dashboard, url, fabric = sys.argv[1:]
bad = n = 0
with open(dashboard) as f:
    panels = json.load(f)["panels"]
for panel in panels:
    for target in panel["targets"]:
        n += 1
        query = target["expr"].replace("$__rate_interval", "4s").replace("$fabric", fabric)
        with urllib.request.urlopen(f"{url}/api/v1/query?query={urllib.parse.quote(query)}", timeout=10) as reply:
            found = json.load(reply)["data"]["result"]
        wrong = [s for s in found if not math.isfinite(float(s["value"][1])) and "quantile" not in query]
        labels = [w.split("}}")[0] for w in target["legendFormat"].split("{{")[1:]]
        missing = [w for w in labels if any(w not in s["metric"] for s in found)]
        if not found or wrong or missing:
            bad += 1
            print(f"{panel['title']}: {query}: {len(found)} series, {len(wrong)} without a number, labels missing: {missing}")
print(f"{n - bad} of {n} queries have data")
sys.exit(bad > 0 or n < 10)
