#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# coverage.sh BUILD: runs the unit tests of a build with MODE=coverage, and 200 seeds of chaos, and prints which part of the lines and
# branches of each room they reached.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:?expected: coverage.sh BUILD}
command -v gcovr >/dev/null || { echo "no gcovr"; exit 77; }
find "$build" -name '*.gcda' -delete
BUILD=$build tests/run.sh unit | grep -E '^FAILED|passed,'
BUILD=$build SEEDS=200 BUDGET=300 tests/chaos.sh | tail -n 1
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
gcovr --root . --object-directory "$build" --exclude 'tests/.*' --exclude '.*trib_[a-z]*\.c' --json-summary "$summary" "$build" >/dev/null || exit 1
jq -r '.files[] | [(.filename | sub("/[^/]*$"; "")), .line_covered, .line_total, .branch_covered, .branch_total] | @tsv' "$summary" |
    awk '
    { l[$1] += $2; L[$1] += $3; b[$1] += $4; B[$1] += $5; tl += $2; TL += $3; tb += $4; TB += $5 }
    function row(name, a, A, c, C) { printf "%-24s %8d %7.1f %% %8d %7.1f %%\n", name, A, A ? 100 * a / A : 0, C, C ? 100 * c / C : 0 }
    END {
        printf "%-24s %8s %9s %8s %9s\n", "room", "lines", "reached", "branches", "reached"
        n = 0
        for (r in L) name[++n] = r
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (name[j] < name[i]) { t = name[i]; name[i] = name[j]; name[j] = t }
        for (i = 1; i <= n; i++) row(name[i], l[name[i]], L[name[i]], b[name[i]], B[name[i]])
        row("all", tl, TL, tb, TB)
    }'
