#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program of trib exec --isolate has a session, a process group and a terminal of its own: kill(0, ...) reaches neither the script that
# calls it nor programs of other hosts beside it, and what it types stays with it. It is an interactive program all the same: Ctrl-C,
# Ctrl-Z, the window's size, the end of input, pipes, and all of its output (isolate_terminal.py).
. "$(dirname "$0")/../e2e/lib.sh"
command -v setsid >/dev/null && command -v stty >/dev/null || skip "no setsid or stty"
trib up two-hosts --dilation 1 >/dev/null || fail "no fabric"
trib exec --isolate two-hosts h0 -- true 2>"$tmp/isolate.out" || { grep -q 'the machine refuses' "$tmp/isolate.out" && skip "$(cat "$tmp/isolate.out")"; fail "$(cat "$tmp/isolate.out")"; }

# one process group: a script, another host's program, and what kills all that it reaches
cat >"$tmp/script" <<'END'
trib=$1 tmp=$2
"$trib" exec two-hosts h1 -- sleep 60 &
other=$!
for how in 'kill -TERM 0' 'python3 -c "import os; os.kill(0, 15)"' 'kill -TERM -1 0'; do
    "$trib" exec --isolate two-hosts h0 -- sh -c "trap : TERM; $how; echo on"
    kill -0 $other || echo "BAD: '$how' has ended a program of h1"
done
"$trib" exec --isolate two-hosts h0 -- sh -c 'kill -TERM 0; sleep 5'
echo "ended with $?"
"$trib" exec --isolate two-hosts h0 -- sh -c '[ "$(ps -o sid= $$)" != "$(ps -o pgid= $$)" ] && kill -s INT $$; sleep 5'
echo "then with $?"
kill $other
END
setsid -w sh "$tmp/script" "$root/scripts/trib" "$tmp" >"$tmp/script.out" 2>&1 </dev/null || true
has_not BAD "$tmp/script.out"
[ "$(grep -c '^on$' "$tmp/script.out")" = 3 ] || fail "the programs themselves: $(cat "$tmp/script.out")"
has '^ended with 143$' "$tmp/script.out"
has '^then with 130$' "$tmp/script.out"

# its signals: of a terminal for the group, sent to the process outside for the program
for sig in INT:130 TERM:143 HUP:129 KILL:137; do
    trib exec --isolate two-hosts h0 -- sh -c "echo up; kill -${sig%:*} \$\$; sleep 5" >"$tmp/code.out" 2>&1
    code=$?
    [ $code = "${sig#*:}" ] || fail "a program that SIG${sig%:*} ends: exit code $code"
done

# a caller that ignores SIGCHLD, and hands that down: ends are heard of, and the program itself has what the caller had
ignoring() { timeout -k 2 60 python3 -c 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])' "$root/scripts/trib" "$@"; }
ignores='import signal, sys; sys.exit(5 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 6)'
ignoring exec --isolate two-hosts h0 -- python3 -c "$ignores" >"$tmp/ignored.out" 2>&1 </dev/null
code=$?
[ $code = 5 ] || fail "SIGCHLD is ignored: trib exec --isolate ends with $code"
ignoring perf two-hosts barrier >"$tmp/ignored.out" 2>&1 </dev/null || fail "SIGCHLD is ignored: trib perf ends with $?"
ignoring up single-switch-4 --dilation 1 >"$tmp/ignored.out" 2>&1 </dev/null || fail "SIGCHLD is ignored: trib up ends with $?"
kill -KILL "$(pids_in "$run"/single-switch-4/proc/*.pid | head -n 1)"
for _ in $(seq 50); do [ -e "$run/single-switch-4/keeper" ] || break; sleep 0.1; done
trib status single-switch-4 >"$tmp/ignored.out" 2>&1
has 'killed by signal 9' "$tmp/ignored.out"
ignoring down single-switch-4 >"$tmp/ignored.out" 2>&1 || fail "SIGCHLD is ignored: trib down ends with $?"

mkdir "$tmp/at"
timeout 150 python3 "$root/tests/hostile/isolate_terminal.py" "$root/scripts/trib" "$tmp/at" >"$tmp/terminal.out" 2>&1 || fail "at a terminal: $(cat "$tmp/terminal.out")"
has_not BAD "$tmp/terminal.out"
has '^done$' "$tmp/terminal.out"
trib down >/dev/null || fail "down"
