#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# arrows.sh: reads every #include and fails on an arrow that runs up. A room may use the rooms named before it, and a folder
# those inside of it. Exceptions are single headers, each with its reason; one that is not needed fails too.
set -u
cd "$(dirname "$0")/.." || exit 1

rooms='include/tributary
include/sharp/api
include/nccl
plugins/common plugins/openmpi plugins/sharp
base base/shortage
plugins/nccl plugins/check
fabric fabric/conf fabric/routing fabric/report fabric/theory
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
