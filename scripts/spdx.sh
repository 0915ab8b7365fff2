#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# spdx.sh: every source file, script and conf names its licence in its first two lines. Documents and data of tests need not.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
while read -r f; do
    [ -f "$f" ] || continue
    head -n 2 "$f" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' && continue
    echo "spdx: $f: found no \"SPDX-License-Identifier: BSD-3-Clause\" in its first two lines"
    bad=1
done < <(git ls-files --cached --others --exclude-standard | grep -vE '^(tests/fuzz/corpus/|tests/fabric/conf/[a-z0-9_-]*\.conf$|tests/(.*/)?expected/|tests/fabric/conf/cases/|tests/chaos/cases/|tests/trace/samples/|tests/e2e/(import|calibrate)/|\.editorconfig|LICENSE|CITATION\.cff|docs/img/)|\.(md|ipynb|json)$' | sort -u)
exit $bad
