#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What people read fits a terminal of 100 columns: rows, links, training steps, jobs, predictions; --wide prints all that is known of a row
# on one line.
# clock: virtual
. "$(dirname "$0")/lib.sh"

fits() { # fits ARG...: of trib
    trib "$@" >"$tmp/table.out" 2>"$tmp/table.err" || fail "trib $*: $(cat "$tmp/table.err")"
    [ "$(wc -l <"$tmp/table.out")" -gt 5 ] || fail "trib $* prints little: $(cat "$tmp/table.out")"
    awk 'length > 100' "$tmp/table.out" >"$tmp/long"
    [ -s "$tmp/long" ] && fail "trib $* prints more than 100 columns: $(cat "$tmp/long")"
    true
}
cat >"$tmp/jobs.conf" <<'EOF'
jobs = (
    { name = "dies"; hosts = "h0:h6:2"; algorithm = "sharp"; size = "256KiB"; repeat = 20; trees = [ 0 ]; die_at = "60us"; },
    { name = "holds"; hosts = "h1:h7:2"; algorithm = "sharp"; size = "256KiB"; repeat = 20; trees = [ 0 ]; },
    { name = "falls"; hosts = "all"; algorithm = "sharp"; size = "256KiB"; repeat = 4; trees = [ 0 ]; },
    { name = "shards"; hosts = "all"; collective = "reduce_scatter"; algorithm = "ring"; size = "256KiB"; repeat = 4; }
);
EOF
fits sim leaf-spine-8 all_reduce --algo ring,sharp,auto,switchml -d int32 -b 16K -e 16K --counters --background-flow h0:h4
fits sim leaf-spine-8 all_reduce --algo sharp -d all -o all -b 16K -e 16K
fits sim leaf-spine-8 all_reduce --schedule "$conf/schedules/allpairs-8.sched" --algo ring,auto -b 64K -e 256K --error
fits sim rail-2x8 reduce --algo sharp -r 3 -b 16M -e 16M -d int8 --payload none
fits sim leaf-spine-8 alltoall -k 3 -b 64K -e 64K
fits sim leaf-spine-8 barrier
fits sim leaf-spine-8 -b 256K -e 256K -n 10 --seed 2 --faults "$conf/faults/flap.conf" --counters
has 'fell back' "$tmp/table.out"
sed 's/groups = 64/groups = 2/' "$conf/leaf-spine-8.conf" >"$tmp/quota.conf"
trib sim "$tmp/quota.conf" --jobs "$tmp/jobs.conf" --counters >"$tmp/table.out" 2>"$tmp/table.err"
has 'dies died at 60' "$tmp/table.out"
has 'falls: by ring' "$tmp/table.out"
awk 'length > 100' "$tmp/table.out" >"$tmp/long"
[ -s "$tmp/long" ] && fail "jobs: $(cat "$tmp/long")"
fits sim leaf-spine-8 --jobs eight
fits sim h100-su --workload llama3-70b
for c in h100-superpod-1024 rail-4x8 leaf-spine-8; do fits model "$c" -b 64G -e 64G; done
fits model h100-superpod-1024 --workload megatron-70b
fits model --bom 16384

# a line for each place; wide: one for both, with what the links carried and the model
fits sim leaf-spine-8 --algo ring -b 64K -e 64K
has '^ +65536 +16384 +float +sum +ring +out +[0-9.]+ +[0-9.]+ +[0-9.]+ +0 +[0-9.]+$' "$tmp/table.out"
has '^ +65536 +16384 +float +sum +ring +in +[0-9.]+ +[0-9.]+ +[0-9.]+ +0 +[0-9.]+$' "$tmp/table.out"
trib sim leaf-spine-8 --algo ring -b 64K -e 64K --wide >"$tmp/wide.out" 2>&1 || fail "--wide"
has '^ +65536 +16384 +float +sum +-1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +0 +[0-9.]+ +[0-9.]+ +[0-9.]+ +0 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +1  ok$' "$tmp/wide.out"
diff <(awk '/^ +65536.* out / { print $7 }' "$tmp/table.out") <(awk '/^ +65536.*ok$/ { print $6 }' "$tmp/wide.out") || fail "two tables of one run differ"
trib sim leaf-spine-8 --jobs eight --wide >"$tmp/wide.out" 2>&1 || fail "--wide of jobs"
has ' start +times +us +alone +slowdown ' "$tmp/wide.out"

# what a conf's costs were not measured for
trib sim cluster-128-edr --algo sharp,ring -b 4K -e 8K -f 2 -w 0 -n 1 --place out --payload none -J "$tmp/far.json" >"$tmp/far.out" 2>&1 || fail "cluster-128-edr"
has "extrapolated: this conf's costs.aggregate holds for vectors up to 4096 bytes" "$tmp/far.out"
python3 - "$tmp/far.json" <<'PY' || fail "rows beyond costs.aggregate"
import json, sys
far = [(r["algo"], r["size_bytes"]) for r in json.load(open(sys.argv[1]))["results"] if r.get("extrapolated_from_bytes") == 4096]
sys.exit(0 if far == [("sharp", 8192)] else str(far))
PY
