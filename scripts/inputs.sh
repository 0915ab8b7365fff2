#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# inputs.sh [FOLDER]: every file that a user names is read through one helper, system/input.h in C and tributary/_input.py in Python, which wait for
# no FIFO and refuse what is no file of a sound size. Fails on what opens files otherwise. Exceptions are files with their reason; one that is
# not needed fails too.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

# FILE REASON
exceptions='
system/input.c the helper
system/process.c /proc
host/bench/host_resources.c /sys, /proc
host/launch/ranks_timeline_ports.c /sys of the machine, or the run directory
host/sandbox/clock_reach.c /proc, programs that are run
host/sandbox/namespace.c files in namespaces of its own
io/live/live_read.c /proc
io/port/port_pci.c /sys
system/shared_object.c a shared object, by O_NONBLOCK
scripts/docs_links.py documents of the tree
scripts/docs_text.py documents and sources of the tree
scripts/names.py sources of the tree
python/tributary/capture/links.py parts of its own, by descriptors
python/tributary/capture/output.py the file that is written
python/tributary/_input.py the helper
python/tributary/_files.py the helper of files that are written
'

git ls-files --cached --others --exclude-standard '*.c' '*.py' 'scripts/trib-*' | sort -u | grep -vE '^(tests|examples|plugins|docs)/' |
    while read -r f; do
        [ -f "$f" ] || continue
        case $f in
        *.c) grep -nE '\b(fopen\(.*"r|open\(.*O_RDONLY|config_read_file\(|json_load_file\(|pcap_open_offline\()' "$f" |
            grep -vE '^[0-9]+:( \*|/\*)|->open\(|outside of open\(\)|"/(proc|sys|dev)/|O_PATH|O_DIRECTORY' ;;
        *) head -n 1 "$f" | grep -q bash || grep -nE '(^|[^.A-Za-z_])open\(|\bos\.open\(|\.read_text\(|\.read_bytes\(|\bjson\.load\(|\.from_file\(|\blibconf\.load\(|_open\(path' "$f" |
            grep -vE 'os\.devnull|def _?open' ;;
        esac | sed "s|^|$f:|"
    done |
    awk -v exceptions="$exceptions" '
    BEGIN {
        n = split(exceptions, line, "\n")
        for (i = 1; i <= n; i++)
            if (split(line[i], w, " ") > 1) allowed[w[1]] = 1
    }
    {
        file = $0; sub(/:.*/, "", file)
        if (file in allowed) { used[file] = 1; next }
        print "inputs: " $0 ": found a file that is opened here, expected system/input.h, or tributary/_input.py"; bad = 1
    }
    END {
        for (f in allowed)
            if (!(f in used)) { print "inputs: exception that nothing needs: " f; bad = 1 }
        exit bad
    }'
