#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks that meet by trib_store_open() beside somebody who reaches rank 0's port without their secret: twelve bytes, silent connections,
# a rank's place, a captured exchange sent again to either end, another secret. The ranks meet, and the stranger is told nothing.
# load: any
. "$(dirname "$0")/../e2e/lib.sh"
program=$TRIB_BUILD/tests/hostile/store
export LD_LIBRARY_PATH=$TRIB_BUILD
secret=$run/store.secret
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# Another user, where this one can be one.
stranger() { "$program" "$@"; }
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    cp "$program" "$tmp/stranger" && chmod 755 "$tmp" "$tmp/stranger"
    cp "$TRIB_BUILD/libtributary.so.1" "$tmp/" && chmod 644 "$tmp/libtributary.so.1"
    stranger() { LD_LIBRARY_PATH=$tmp setpriv --reuid 65533 --regid 65533 --clear-groups "$tmp/stranger" "$@"; }
fi

# meet SIZE SECONDS: all ranks but those of $elsewhere; 0: they have met, and have told each other their words
elsewhere=
meet() {
    local r rc=0 pids=() words
    words=$(seq -f word%.0f -s ' ' 0 $(($1 - 1)))
    for ((r = 0; r < $1; r++)); do
        [[ " $elsewhere " == *" $r "* ]] && continue
        "$program" rank "127.0.0.1:$port" $r "$1" "$2" >"$tmp/rank$r.out" 2>&1 &
        pids+=($!)
    done
    for r in "${pids[@]}"; do wait "$r" || rc=1; done
    cat "$tmp"/rank[0-9]*.out >"$tmp/ranks.out"
    rm "$tmp"/rank[0-9]*.out
    [ $rc = 0 ] && [ "$(grep -cx "rank [0-9]*: $words" "$tmp/ranks.out")" = ${#pids[@]} ]
}

meet 4 20 || fail "four ranks: $(cat "$tmp/ranks.out")"
[ "$(stat -c %a "$secret")" = 600 ] || fail "the secret: $(stat "$secret")"
grep -qxE '[0-9a-f]{64}' "$secret" || fail "what the secret looks like"

# A rank comes after the stranger, so that rank 0 has heard that one first.
late() {
    "$program" rank "127.0.0.1:$port" 0 2 8 >"$tmp/zero.out" 2>&1 &
    zero=$!
    stranger "$@" >"$tmp/stranger.out" 2>&1 || fail "$1: $(cat "$tmp/stranger.out")"
    sleep 0.2
    elsewhere=0 meet 2 8 || fail "$1: $(cat "$tmp/zero.out" "$tmp/ranks.out")"
    wait $zero || fail "$1: $(cat "$tmp/zero.out")"
}
late twelve "$port"
late place "$port" 1 2
has 'as before: told 0 bytes' "$tmp/stranger.out"
has 'a false proof: told 0 bytes' "$tmp/stranger.out"

# Five would have had 2 s each before, one after the other; 200 are more than rank 0 keeps.
for n in 5 200; do
    rm "$tmp/stranger.out"
    "$program" rank "127.0.0.1:$port" 0 2 8 >"$tmp/zero.out" 2>&1 &
    zero=$!
    stranger silent "$port" $n 30 >"$tmp/stranger.out" 2>&1 &
    silent=$!
    until grep -q silent "$tmp/stranger.out" 2>/dev/null || ! kill -0 $zero 2>/dev/null; do sleep 0.05; done
    has "^$n silent" "$tmp/stranger.out"
    elsewhere=0 meet 2 8 || fail "$n silent: $(cat "$tmp/zero.out" "$tmp/ranks.out")"
    wait $zero || fail "$n silent: $(cat "$tmp/zero.out")"
    kill $silent
done
stranger silent "$port" 200 1 >"$tmp/stranger.out" 2>&1 & # from the moment at which rank 0 listens
meet 8 15 || fail "eight ranks beside 200 silent: $(cat "$tmp/ranks.out" "$tmp/stranger.out")"
wait $! || fail "the silent: $(cat "$tmp/stranger.out")"
# Nobody keeps a connection by a byte now and then: rank 1 comes when it has ended.
"$program" rank "127.0.0.1:$port" 0 2 15 >"$tmp/zero.out" 2>&1 &
zero=$!
stranger drip "$port" 8 >"$tmp/stranger.out"
has 'hung up after [1-4]\.' "$tmp/stranger.out"
elsewhere=0 meet 2 8 || fail "a byte now and then: $(cat "$tmp/zero.out" "$tmp/ranks.out")"
wait $zero || fail "a byte now and then: $(cat "$tmp/zero.out")"

# Messages of a rank, captured, prove nothing later, and messages of rank 0 prove nothing to a rank. The one who captures them was at the port before
# rank 0.
"$program" relay "$port" "$tmp/captured" >"$tmp/relay.out" &
relay=$!
"$program" rank "127.0.0.1:$port" 1 2 8 >"$tmp/one.out" 2>&1 &
until grep -q taken "$tmp/relay.out" || ! kill -0 $relay 2>/dev/null; do sleep 0.05; done
elsewhere=1 meet 2 8 || fail "through a relay: $(cat "$tmp/ranks.out" "$tmp/one.out")"
wait $relay || fail "nothing captured"
chmod 644 "$tmp/captured"
late replay "$port" "$tmp/captured"
has 'replayed: told 0 bytes' "$tmp/stranger.out"
stranger impostor "$port" "$tmp/captured" >"$tmp/stranger.out" 2>&1 &
impostor=$!
"$program" rank "127.0.0.1:$port" 1 2 15 >"$tmp/one.out" 2>&1 &
one=$!
wait $impostor || fail "a false rank 0: $(cat "$tmp/stranger.out")"
has 'impostor: 96 bytes' "$tmp/stranger.out" # the rank's own proof, no word of it
elsewhere=1 meet 2 10 || fail "after a false rank 0: $(cat "$tmp/ranks.out" "$tmp/one.out")"
wait $one || fail "after a false rank 0: $(cat "$tmp/one.out")"
has 'rank 1: word0 word1' "$tmp/one.out"

# Another secret, and none: both ends say it, by the name of where they found theirs.
(umask 077 && head -c 24 /dev/urandom | base64 >"$tmp/other.secret")
"$program" rank "127.0.0.1:$port" 0 2 2 >"$tmp/zero.out" 2>&1 &
TRIB_STORE_SECRET_FILE=$tmp/other.secret "$program" rank "127.0.0.1:$port" 1 2 1.5 >"$tmp/one.out" 2>&1 && fail "another secret"
wait $! && fail "another secret"
has 'rank 1 cannot reach rank 0: .*another secret than found here in TRIB_STORE_SECRET_FILE, expected one for all ranks' "$tmp/one.out"
has "have not connected: 1; hung up on [0-9]+ that had another secret than the one found here in .*store\.secret" "$tmp/zero.out"
TRIB_STORE_SECRET_FILE=$tmp/other.secret meet 2 10 || fail "a file: $(cat "$tmp/ranks.out")"
TRIB_STORE_SECRET='the same for all of them' meet 2 10 || fail "the environment: $(cat "$tmp/ranks.out")"
chmod 640 "$tmp/other.secret"
TRIB_STORE_SECRET_FILE=$tmp/other.secret meet 2 2 && fail "a file that others read"
has 'other.secret: found a file of user [0-9]+ with mode 0640, expected a plain file of user [0-9]+ with mode 0600' "$tmp/ranks.out"
TRIB_STORE_SECRET=short meet 2 2 && fail "a short secret"
has 'TRIB_STORE_SECRET: found a secret of 5 characters, expected 16 to 127' "$tmp/ranks.out"
has_not short "$tmp/ranks.out"
TRIB_STORE_SECRET_FILE=$tmp/nowhere meet 2 2 && fail "no file"
has 'TRIB_STORE_SECRET_FILE: cannot read .*nowhere' "$tmp/ranks.out"
chmod 644 "$secret"
meet 2 2 && fail "a secret of the user's that others read"
has 'store\.secret: found a file .* mode 0644, expected .* mode 0600' "$tmp/ranks.out"
rm "$secret"

# Isolated programs do not see the file, and have the secret all the same; the last fabric takes it along.
trib up two-hosts >/dev/null || fail up
if trib exec --isolate h0 -- true 2>/dev/null; then
    for r in 0 1; do
        trib exec --isolate h$r -- sh -c "[ ! -e '$secret' ] && exec '$program' rank 127.0.0.1:$port $r 2 20" >"$tmp/isolated$r.out" 2>&1 &
        pids[r]=$!
    done
    elsewhere=0
    for r in 0 1; do wait "${pids[r]}" || fail "isolated ranks: $(cat "$tmp"/isolated?.out)"; done
    has 'word0 word1' "$tmp/isolated1.out"
fi
trib down >/dev/null || fail down
[ ! -e "$run" ] || fail "left: $(find "$run")"
