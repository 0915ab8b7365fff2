#!/usr/bin/env bash
# chaos.sh: SEEDS cases (default 1000) from FIRST (1) on, spread over the cores, for BUDGET seconds (300) at most. Says how many
# were run, and of each that failed what it was and how to run it again.
set -u
cd "$(dirname "$0")/.."
sim=${BUILD:-build}/trib-sim seeds=${SEEDS:-1000} first=${FIRST:-1} budget=${BUDGET:-300} jobs=${JOBS:-$(nproc)} chunk=20
for n in "$seeds" "$first" "$budget" "$jobs"; do
    [[ "$n" =~ ^[0-9]+$ ]] || { echo "chaos.sh: found \"$n\", expected a whole number" >&2; exit 2; }
done
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
end=$((SECONDS + budget)) last=$((first + seeds - 1))

# part FROM TO: a process, so that one that crashes takes no other with it; the rest of its seeds goes on in another.
part() {
    local from=$1 to=$2 rc seed
    while [ "$from" -le "$to" ]; do
        "$sim" --chaos "$from-$to" >>"$logs/$1" 2>&1
        rc=$?
        [ $rc -le 1 ] && return
        seed=$(grep -oE '^seed [0-9]+' "$logs/$1" | tail -n 1 | cut -c6-)
        if [ -z "$seed" ] || [ "$seed" -lt "$from" ]; then
            echo "FAILED: cannot run, exit code $rc" >>"$logs/$1"
            return
        fi
        printf '\nseed %s: FAILED: exit code %s\n  replay: trib sim --chaos %s\n' "$seed" $rc "$seed" >>"$logs/$1"
        from=$((seed + 1))
    done
}

running=0
for ((s = first; s <= last && SECONDS < end; s += chunk)); do
    [ $running -ge "$jobs" ] && { wait -n; running=$((running - 1)); }
    part $s $((s + chunk - 1 < last ? s + chunk - 1 : last)) &
    running=$((running + 1))
done
wait
cat "$logs"/* >"$logs/all" 2>/dev/null
# A line is a seed's verdict, and what stands under it.
awk '/^seed /{ p = /FAILED/ } / seeds, .* failed;/{ p = 0 } p || /FAILED/' "$logs/all"
done=$(grep -oE '^seed [0-9]+' "$logs/all" | sort -u | wc -l)
failed=$(grep -E 'FAILED' "$logs/all" | wc -l)
echo "chaos: $done of $seeds seeds in $SECONDS s, $failed failed;" \
    "$(grep -c ': named errors on' "$logs/all") ended with named errors, $(grep -c ': exact, fell back' "$logs/all") without aggregation nodes"
[ "$failed" = 0 ] && [ "$done" -gt 0 ]
