#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Python package: confs as objects, each conf that comes with trib through them; runs and files of results as DataFrames; its errors
# (tests/tools/results_check.py). Importing it imports neither pandas nor matplotlib.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
export PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1
$python -c '
import sys, tributary, tributary.coll
found = {"pandas", "matplotlib", "libconf", "numpy"} & set(sys.modules)
sys.exit(f"imports {found}" if found else 0)' || fail "tributary is not light"
$python -c 'import pandas, libconf' 2>/dev/null || skip "no pandas or libconf for $python (scripts/setup.sh python)"
timeout 100 $python "$root/tests/tools/results_check.py" "$conf" "$tmp" >"$tmp/check.out" 2>&1 || fail "results_check.py: exit code $?"
has '^all right$' "$tmp/check.out"

# The types, where mypy is.
command -v /usr/bin/mypy >/dev/null || skip "all but the types: no mypy"
(cd "$root/python" && /usr/bin/mypy --cache-dir="$tmp/mypy" -m tributary.conf -m tributary.results -m tributary.plot -p tributary.sweeps -p tributary.report -p tributary.explain -p tributary.capture -p tributary.experiments -p tributary.machines -p tributary.importer -p tributary.calibrate -p tributary.nccl) >"$tmp/mypy.out" 2>&1 || fail "mypy"
