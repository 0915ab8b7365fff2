#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# sizes.sh: checks the sizes of files, functions and folders; fails above these limits: a file of 500 lines, a function of 60,
# a folder of 25 .c files, medians of 200 and 13. A function is the text between "{" and "}" in the first column.
set -u
cd "$(dirname "$0")/.." || exit 1
git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cu' | sort -u | while read -r f; do [ -f "$f" ] && echo "$f"; done |
    awk '
    function median(a, n,    i) { asort_(a, n); return a[int((n + 1) / 2)] }
    function asort_(a, n,    i, j, t) { # counting: lengths are small
        delete hist
        for (i = 1; i <= n; i++) hist[a[i]]++
        j = 1
        for (t = 0; j <= n && t < 100000; t++) for (i = 0; i < hist[t]; i++) a[j++] = t
    }
    {
        file = $0; lines = 0; inside = 0
        while ((getline line < file) > 0) {
            lines++
            if (line == "{") { inside = 1; from = lines; head = before }
            else if (line ~ /^}/ && inside) {
                inside = 0; len = lines - from - 1; fn[++n_fn] = len
                if (len + 2 > 60) { print "sizes: " file ":" from ": a function of " len " lines, 60 at most: " head; bad = 1 }
            }
            if (line !~ /^[ \t]*$/) before = line
        }
        close(file)
        fl[++n_fl] = lines
        if (lines > 500) { print "sizes: " file ": " lines " lines, 500 at most"; bad = 1 }
        dir = file; sub(/\/[^\/]*$/, "", dir)
        if (file ~ /\.c$/ && ++count[dir] == 26) { print "sizes: " dir ": more than 25 .c files"; bad = 1 }
    }
    END {
        mf = median(fl, n_fl); mn = median(fn, n_fn)
        print "sizes: " n_fl " files, median " mf " lines; " n_fn " functions, median " mn
        if (mf > 200) { print "sizes: files: median " mf ", 200 at most"; bad = 1 }
        if (mn > 13) { print "sizes: functions: median " mn ", 13 at most"; bad = 1 }
        exit bad
    }'
