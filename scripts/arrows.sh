#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# arrows.sh [BUILD]: reads every #include and fails on an arrow that runs up. A room may use the rooms named before it, and a folder
# those inside of it. Exceptions are single headers, each with its reason; one that is not needed fails too.
# With BUILD, whose objects are there, also what they call: a function that is declared below and defined above is an arrow, too.
set -u
cd "$(dirname "$0")/.." || exit 1

rooms='include/tributary
include/sharp/api
include/nccl
plugins/common plugins/openmpi plugins/sharp
base base/shortage
system
plugins/nccl plugins/check
fabric fabric/routing fabric/conf fabric/report fabric/theory
aggregation
protocols protocols/host protocols/check
roce/cc roce
machine
switch/queue switch switch/reduce switch/multimem switch/protocol switch/net
io io/port io/memif io/telemetry io/trunk io/live
host/clock host/clock/calls
host/hca host/hca/memory host/hca/io
host/kernels
host/coll host/coll/alg host/coll/gpu host/coll/transport host/coll/recovery host/coll/model
host/bench/verify host/bench host/session plugins/pmix host/launch host/sandbox host/keep host/hint
sim/world sim/job sim/report sim/chaos sim/step sim/jobs sim'

# FOLDER HEADER REASON
exceptions='
switch/reduce switch/multimem/mm.h an aggregation node owns its multimem unit and passes it frames, events and ticks
'

# FOLDER FOLDER REASON: calls
calls='
host/coll/transport host/coll/recovery a stream that ends or a JOIN that is refused is told to the recovery, by host/coll/failover.h and rejoin.h
switch/reduce switch/multimem an aggregation node owns its multimem unit and passes it frames, events and ticks
'
# Functions of the C library that a folder defines once more for the program that it is linked to or preloaded into.
library='
host/clock/calls the clock of a fabric: clock_gettime, poll and others
host/hca/io dlopen alone
protocols/check malloc and others, to count what a protocol has
'

includes() {
    git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cu' | grep -v '^tests/' | xargs grep -H '^#include "' |
    awk -v rooms="$rooms" -v exceptions="$exceptions" '
    BEGIN {
        n = split(rooms, r)
        for (i = 1; i <= n; i++) place[r[i]] = i
        m = split(exceptions, line, "\n")
        for (i = 1; i <= m; i++)
            if (split(line[i], w, " ") > 2) allowed[w[1] " " w[2]] = 1
    }
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    {
        file = $0; sub(/:#include.*/, "", file)
        header = $0; sub(/^[^"]*"/, "", header); sub(/".*/, "", header)
        a = folder(file); b = folder(header)
        if (!(a in place)) { print "arrows: " file ": its folder is no room of scripts/arrows.sh"; bad = 1; next }
        if (!(b in place)) { print "arrows: " file ": found #include \"" header "\", expected a header of a room by its path from the top"; bad = 1; next }
        if (place[b] <= place[a] || index(b, a "/") == 1) next
        if ((a " " header) in allowed) { used[a " " header]++; next }
        print "arrows: " file ": found #include \"" header "\", expected a header of a room before " a; bad = 1
    }
    END {
        for (e in allowed) {
            if (e in used) print "arrows: exception: " e " (" used[e] ")"
            else { print "arrows: exception that nothing needs: " e; bad = 1 }
        }
        exit bad
    }'
}

# Plug-ins call what include/tributary declares, whoever defines it; so do they what libibverbs declares.
symbols() { # symbols BUILD
    local objects
    objects=$(git ls-files --cached --others --exclude-standard '*.c' | grep -v '^tests/' | sed "s|^\(.*\)\.c$|$1/\1.o|" | xargs ls 2>/dev/null)
    [ -n "$objects" ] || { echo "arrows: found no objects in $1, expected a build"; return 1; }
    echo "$objects" | xargs nm -A -g | awk -v build="$1/" -v rooms="$rooms" -v calls="$calls" -v library="$library" '
    BEGIN {
        n = split(rooms, r, /[ \n]+/)
        for (i = 1; i <= n; i++) place[r[i]] = i
        m = split(calls, line, "\n")
        for (i = 1; i <= m; i++)
            if (split(line[i], w, " ") > 2) allowed[w[1] " " w[2]] = 1
        m = split(library, line, "\n")
        for (i = 1; i <= m; i++)
            if (split(line[i], w, " ") > 1) again[w[1]] = 1
    }
    {
        split($1, p, ":")
        object = substr(p[1], length(build) + 1)
        folder = object; sub(/\/[^\/]*$/, "", folder)
        if ($(NF - 1) == "U") users[$NF] = users[$NF] " " object
        else if (object !~ /\/trib_[a-z_]*\.o$/) definer[$NF] = definer[$NF] " " folder
    }
    function is_below(a, b) { return place[b] <= place[a] || index(b, a "/") == 1 }
    END {
        for (symbol in users) {
            k = split(definer[symbol], d, " ")
            u = split(users[symbol], user, " ")
            for (j = 1; j <= u; j++) {
                a = user[j]; sub(/\/[^\/]*$/, "", a)
                up = ""
                for (i = 1; i <= k; i++) {
                    if (is_below(a, d[i]) || d[i] in again || a ~ /^plugins\//) { up = ""; break }
                    up = d[i]
                }
                if (up == "") continue
                if ((a " " up) in allowed) { used[a " " up]++; continue }
                print "arrows: " user[j] ": found a call of " symbol "() of " up ", expected one of a room before " a; bad = 1
            }
        }
        for (e in allowed) {
            if (e in used) print "arrows: exception: " e " (" used[e] " calls)"
            else { print "arrows: exception that nothing needs: " e; bad = 1 }
        }
        exit bad
    }'
}

includes
bad=$?
[ -z "${1:-}" ] || symbols "${1%/}" || bad=1
exit $bad
