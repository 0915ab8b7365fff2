#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Notebooks of docs/labs run from the first cell to the last, in a small version, and docs/python.md's examples as they stand.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
export PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=$tmp/mpl MPLBACKEND=agg TRIB_LAB=quick
$python -c 'import pandas, libconf, matplotlib, nbconvert, ipykernel' 2>/dev/null || skip "no pandas, libconf, matplotlib, nbconvert or ipykernel for $python (scripts/setup.sh python)"
export JUPYTER_CONFIG_DIR=$tmp/jupyter JUPYTER_DATA_DIR=$tmp/jupyter JUPYTER_RUNTIME_DIR=$tmp/jupyter IPYTHONDIR=$tmp/ipython
for notebook in "$root"/docs/labs/*.ipynb; do
    name=$(basename "$notebook" .ipynb)
    cp "$notebook" "$tmp"
    (cd "$tmp" && timeout 100 $python -Xfrozen_modules=off -m nbconvert --to notebook --execute "$name.ipynb" --output "$name.done.ipynb") >"$tmp/$name.out" 2>&1 || fail "$name: $(tail -n 20 "$tmp/$name.out")"
    lines=$(jq '[.cells[] | select(.cell_type == "code") | .source | if type == "array" then join("") else . end | split("\n")[] | select(test("^\\s*(#.*)?$") | not)] | length' "$notebook")
    [ "$lines" -le 25 ] || fail "$name has $lines lines of code"
done
[ "$(stat -c %s "$tmp/paper_figure.png")" -gt 20000 ] || fail "no figure"
awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/docs/python.md" >"$tmp/examples.py"
[ "$(grep -c 't\.' "$tmp/examples.py")" -ge 4 ] || fail "no examples in docs/python.md"
(cd "$tmp" && timeout 100 $python examples.py) >"$tmp/examples.out" 2>&1 || fail "docs/python.md"
[ -s "$tmp/busbw.png" ] && [ -s "$tmp/slow-spines.conf" ] || fail "what docs/python.md makes"
