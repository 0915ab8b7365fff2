#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Switches that cut through: what trib plan says of them, every all-reduce beside its model and beside stored frames, the same for any
# number of threads, and the same by both clocks.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

sed 's/^mtu .*/&\nforwarding = "cut-through";/' "$conf/leaf-spine-8.conf" >"$tmp/cut.conf"
sed 's/\(host_link  = { rate = "\)400Gb/\140Gb/' "$tmp/cut.conf" >"$tmp/up.conf" # hosts of 40 Gb/s
grep -q '"40Gb/s"' "$tmp/up.conf" || fail "up.conf has no slower links"

trib plan "$tmp/cut.conf" >"$tmp/plan.out" || fail "trib plan"
has '^4 of 4 switches cut through' "$tmp/plan.out"
has '^longest round trip 2[.]57 us' "$tmp/plan.out" # 3.07 with stored frames
trib plan leaf-spine-8.conf | grep 'cut through' && fail "switches of leaf-spine-8 store frames"

# times FILE: algorithm, size, measured, predicted
times() { jq -r '.results[] | "\(.algo) \(.size_bytes) \(.time_us) \(.predicted_us)"' "$1"; }

# Within 2 % of the model, 3.5 % where two frames of a message meet others; never slower than stored frames, and as fast by SHARP.
args=(all_reduce -b 4K -e 1M -f 4 --algo ring,sharp,tree,halving,direct --payload none --place out)
trib sim "$tmp/cut.conf" "${args[@]}" -J "$tmp/cut.json" >"$tmp/cut.out" 2>&1 || fail "cut-through: $(tail -n 3 "$tmp/cut.out")"
trib sim leaf-spine-8.conf "${args[@]}" -J "$tmp/store.json" >"$tmp/store.out" 2>&1 || fail "stored: $(tail -n 3 "$tmp/store.out")"
paste -d ' ' <(times "$tmp/cut.json") <(times "$tmp/store.json") >"$tmp/rows"
[ "$(wc -l <"$tmp/rows")" = 25 ] || fail "expected 25 rows: $(cat "$tmp/rows")"
awk '{ r = $3 / $4; bad = r < 0.965 || r > 1.035 || ($1 == "sharp" ? $3 != $7 : $3 >= $7)
        printf "%-8s %8d %10.2f us %6.3f of the model %6.3f of stored%s\n", $1, $2, $3, r, $3 / $7, bad ? "  BAD" : ""; n += bad }
    END { exit n > 0 }' "$tmp/rows" || fail "beyond the model, or slower than stored frames"

# Threads, also where frames wait for their last bits; one_result.sh adds counters and traces.
for c in cut up; do
    for n in 1 2 4; do
        trib sim "$tmp/$c.conf" all_reduce -b 64K -e 64K --algo all --counters --threads $n -J "$tmp/threads.json" >"$tmp/$c.$n" 2>/dev/null ||
            fail "$c with $n threads"
        jq 'del(.run)' "$tmp/threads.json" >>"$tmp/$c.$n"
    done
    cmp "$tmp/$c.1" "$tmp/$c.2" && cmp "$tmp/$c.1" "$tmp/$c.4" || fail "$c: threads change the result"
done

# Both clocks; a machine that does not keep up says so.
verdict=lag
for chance in 1 2 3; do
    trib sim "$tmp/cut.conf" --algo ring -b 64K -e 64K -n 3 -J "$tmp/sim.json" >/dev/null 2>&1 || fail "trib sim"
    trib perf "$tmp/cut.conf" --algo ring -b 64K -e 64K -n 3 --max-wall 10 -J "$tmp/perf.json" >"$tmp/perf.out" 2>&1
    [[ $? =~ ^[04]$ ]] || fail "trib perf: $(tail -n 3 "$tmp/perf.out")" # 4: some rows unmeasured
    verdict=$(jq -rn --slurpfile s "$tmp/sim.json" --slurpfile p "$tmp/perf.json" '
        (($p[0].results[0].time_us // 0) / $s[0].results[0].time_us) as $r |
        (if $p[0].results[0].fidelity.ok | not then "lag" elif $r > 0.95 and $r < 1.05 then "agrees" else "apart" end) + " \($r)"')
    echo "chance $chance: real over virtual time: $verdict"
    [[ $verdict != agrees* ]] || break
done
case $verdict in
agrees*) ;;
apart*) fail "real and virtual time are more than 5 % apart" ;;
*) skip "this machine did not keep up" ;;
esac
