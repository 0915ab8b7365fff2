#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# chaos.sh: SEEDS cases (default 1000) from FIRST (1) on, spread over the cores (JOBS), for BUDGET seconds (300) at most.
# A seed that takes longer than SEED_WALL seconds (60) fails. Prints the number of seeds run, and for each failure the case, the command
# that repeats it and the last events of every engine; on SIGINT or SIGTERM it prints the same for the seeds run so far.
set -u
cd "$(dirname "$0")/.." || exit 1
sim=${BUILD:-build}/trib-sim seeds=${SEEDS:-1000} first=${FIRST:-1} budget=${BUDGET:-300} jobs=${JOBS:-$(nproc)} wall=${SEED_WALL:-60} chunk=20
for n in "$seeds" "$first" "$budget" "$jobs" "$wall"; do
    [[ "$n" =~ ^[0-9]+$ ]] || { echo "chaos.sh: found \"$n\", expected a whole number" >&2; exit 2; }
done
[ -x "$sim" ] || { echo "chaos.sh: found no $sim, expected it to be built" >&2; exit 2; }
logs=$(mktemp -d)
last=$((first + seeds - 1)) over='' code=''

# part FROM TO: a process of its own, so that a crash affects no other one; another process runs the rest of its seeds.
part() {
    local log=$logs/part.$1 err=$logs/err.$1 from=$1 to=$2 pid='' rc seed
    trap 'kill -KILL $pid 2>/dev/null; exit 0' TERM
    while [ "$from" -le "$to" ]; do
        "$sim" --chaos "$from-$to" --max-wall "$wall" >>"$log" 2>"$err" &
        pid=$!
        wait $pid
        rc=$?
        [ $rc -le 1 ] && { cat "$err" >>"$log"; return; }
        seed=$(grep -oE '^seed [0-9]+' "$log" | tail -n 1 | cut -c6-)
        if [ -z "$seed" ] || [ "$seed" -lt "$from" ]; then
            { printf '\nFAILED: cannot run, exit code %s\n' $rc; cat "$err"; } >>"$log"
            return
        fi
        # A seed that took too long has reported that.
        [ $rc = 3 ] || printf ': FAILED: exit code %s%s\n  replay: trib sim --chaos %s\n' $rc \
            "$([ $rc -le 128 ] || echo " (SIG$(kill -l $((rc - 128))))")" "$seed" >>"$log"
        # The output of an assertion or a sanitizer: its message, and the event rings.
        cat "$err" >>"$log"
        from=$((seed + 1))
    done
}

# A trap runs at once, because this shell only waits for its children.
trap 'over="its budget is over"' USR1
trap 'over="ended by SIGINT" code=130' INT
trap 'over="ended by SIGTERM" code=143' TERM
trap 'rm -rf "$logs"' EXIT
(
    trap 'kill $! 2>/dev/null; exit' TERM
    sleep "$budget" &
    wait
    kill -USR1 $$
) &
clock=$!

running() { jobs -rp | grep -cvx $clock; }
for ((s = first; s <= last; s += chunk)); do
    while [ -z "$over" ] && [ "$(running)" -ge "$jobs" ]; do wait -n; done
    [ -z "$over" ] || break
    part $s $((s + chunk - 1 < last ? s + chunk - 1 : last)) &
done
while [ -z "$over" ] && [ "$(running)" -gt 0 ]; do wait -n; done
trap '' INT TERM USR1
kill $clock 2>/dev/null
if [ -n "$over" ]; then
    # shellcheck disable=SC2046
    kill $(jobs -rp) 2>/dev/null
fi
wait

# A line is a seed's verdict, followed by details. The last line of a terminated part has no verdict.
for f in "$logs"/part.*; do
    [ -e "$f" ] || continue
    cat "$f"
    [ -z "$(tail -c 1 "$f")" ] || echo
done >"$logs/all"
awk '/^seed /{ p = /FAILED/ } / seeds, .* failed;/{ p = 0 } p || /FAILED/' "$logs/all"
done=$(grep -cE '^seed [0-9]+.*: (exact|named errors|FAILED)' "$logs/all")
failed=$(grep -cE 'FAILED' "$logs/all")
cut=$(grep -E '^seed [0-9]+' "$logs/all" | grep -vE ': (exact|named errors|FAILED)' | cut -d: -f1 | tr '\n' ' ')
echo "chaos: $done of $seeds seeds in $SECONDS s${over:+ ($over${cut:+; in the middle of ${cut% }})}, $failed failed;" \
    "$(grep -c ': named errors on' "$logs/all") ended with named errors, $(grep -c ': exact, fell back' "$logs/all") without aggregation nodes"
[ -z "$code" ] || exit $code
[ "$failed" = 0 ] && [ "$done" -gt 0 ]
