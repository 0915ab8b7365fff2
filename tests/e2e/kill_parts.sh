#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Parts of `trib perf CONF` (script, launcher, a rank, trib-switch, trib-keep) are killed, ended or stopped at random moments, beside two
# busy loops: the rest ends by itself, and nothing is left: no process, run directory, shared memory or temporary file.
# ROUNDS=30 for each part makes it a campaign; SEED repeats one.
. "$(dirname "$0")/lib.sh"

rounds=${ROUNDS:-1}
RANDOM=${SEED:-$$}
name=leaf-spine-8
export TMPDIR=$tmp/t
mkdir "$TMPDIR"

busy=()
for i in 1 2; do
    (while :; do :; done) &
    busy+=($!)
done
# the busy loops are no part of what is looked for
others=" ${busy[*]} "
left() {
    local p
    for p in $(own_processes); do
        [[ "$others" == *" $p "* ]] || [ ! -e "/proc/$p/exe" ] || ! readlink "/proc/$p/exe" >/dev/null || echo "$p"
    done
}
shm() { find /dev/shm /dev/hugepages -newer "$tmp/began" -user "$(id -un)" 2>/dev/null | grep -E 'trib|rte|dpdk|memif'; }
clean() { [ -z "$(left)" ] && [ ! -e "$run" ]; }

part() { # part NAME: its pid, when there is one
    case $1 in
    script) echo $script ;;
    launcher) pgrep -P $script -f 'trib-perf' | head -n 1 ;;
    rank) ranks "$(part launcher)" | sed -n "$((RANDOM % 8 + 1))p" ;;
    switch) pgrep -f "trib-switch .*--run $run/$name" | head -n 1 ;;
    keeper) pgrep -f "trib-keep start $run/$name " | tail -n 1 ;;
    esac
}

one() { # one PART SIGNAL MOMENT(ms)
    local victim what="$1 by $2 after $3 ms"
    : >"$tmp/began"
    "$root/scripts/trib" perf $name -b 64K -e 1M -f 16 -n 100000 --max-wall 60 -J "$tmp/t/x.json" >"$tmp/one.out" 2>&1 &
    script=$!
    sleep "$(($3 / 1000)).$(printf %03d $(($3 % 1000)))"
    victim=$(part "$1")
    if [ -z "$victim" ]; then # not there yet
        victim=$script
    fi
    kill "-$2" "$victim" 2>/dev/null
    if [ "$2" = STOP ]; then
        sleep 1
        [ "$victim" != $script ] || kill -CONT $script 2>/dev/null
        kill -TERM $script 2>/dev/null
    elif [ "$victim" != $script ]; then
        # a rank takes nothing but KILL as its end, and a launcher that was told to end does
        case $1,$2 in rank,TERM | keeper,INT) kill -TERM $script 2>/dev/null ;; esac
    fi
    until_true 30 clean || {
        ps -o pid,ppid,stat,etimes,args -p "$(left | paste -sd,)" 2>/dev/null
        fail "$what: left $(left) $(find "$run" 2>/dev/null | head -n 5)"
    }
    wait $script 2>/dev/null && fail "$what: exit code 0"
    rm -f "$TMPDIR/x.json"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "$what: left files $(ls -A "$TMPDIR")"
    [ -z "$(shm)" ] || fail "$what: left $(shm)"
}

n=0
for ((i = 0; i < rounds; i++)); do
    for p in script launcher rank switch keeper; do
        signals=(KILL KILL TERM STOP)
        [ $p != script ] || signals=(KILL KILL TERM HUP)
        one $p "${signals[RANDOM % 4]}" $((RANDOM % 3000))
        n=$((n + 1))
    done
done

# A keeper that is killed while it starts a fabric: the command undoes the start, and says so.
for command in "perf $name -e 64K" "up $name"; do
    for part in "" /proc /shared; do
        trib $command >"$tmp/start.out" 2>&1 &
        script=$!
        until_true 10 test -e "$run/$name$part"
        kill -KILL "$(pgrep -n -f "trib-keep start $run/$name ")" || fail "$command: no keeper at '$part'"
        wait $script && fail "$command: exit code 0 without a keeper at '$part': $(cat "$tmp/start.out")"
        until_true 30 clean || fail "$command: killed at '$part': left $(left) $(find "$run" 2>/dev/null | head -n 5)"
        n=$((n + 1))
    done
done
grep -q 'which started the fabric leaf-spine-8, was killed by signal 9 (Killed); the start is undone' "$tmp/start.out" ||
    fail "a killed keeper is not named: $(cat "$tmp/start.out")"

# A fabric that `trib up` has started outlives the script, its caller's hang-up and its keeper.
trib up two-hosts >/dev/null || fail "up"
kill -KILL "$(pgrep -f "trib-keep start $run/two-hosts ")"
sleep 0.3
trib status two-hosts >/dev/null || fail "a fabric went with its keeper"
trib down two-hosts >/dev/null || fail "down without a keeper"
clean || fail "left $(left) $(find "$run" 2>/dev/null | head -n 5)"
kill "${busy[@]}"
echo "$n ended, nothing left"
