#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A conf's path and a capture's filter with what shells read in them, on another machine: by launchers that hand their words to a shell there,
# as ssh does, and by launchers that run them as they are, as srun does. Names say nothing about which a launcher is. The words arrive
# as they are, and nothing in them runs. Two run directories of this machine stand for two machines.
# load: any
. "$(dirname "$0")/../e2e/lib.sh"
mkdir -m 700 "$tmp/there" "$tmp/bin"
left_there() {
    local rc=$?
    TRIB_RUN="$tmp/there/tributary-$(id -u)/spread" trib down >/dev/null 2>&1
    (exit $rc)
    finish
}
trap left_there EXIT
cat >"$tmp/bin/ssh" <<END
#!/bin/sh
shift
printf '%s\n' "\$@" >>"$tmp/words"
cd "$tmp/there" && XDG_RUNTIME_DIR="$tmp/there" exec "\$@"
END
cat >"$tmp/bin/runs" <<END
#!/bin/sh
shift
printf '%s\n' "\$*" >>"$tmp/words"
cd "$tmp/there" && XDG_RUNTIME_DIR="$tmp/there" exec bash -c "\$*"
END
sed 's/exec bash -c/exec sh -c/' "$tmp/bin/runs" >"$tmp/bin/again" # a second shell, as with ssh over ssh
sed -i "s|exec sh -c .*|exec sh -c \"sh -c '\$*'\"|" "$tmp/bin/again"
chmod +x "$tmp/bin/"*
export PATH="$tmp/bin:$PATH"

sed 's/^name .*/name = "spread";/' "$conf/leaf-spine-8.conf" >"$tmp/plain.conf"
cat >>"$tmp/plain.conf" <<END
machines = ( { name = "m0"; address = "127.0.0.1"; port = $port; nodes = ( "leaf0", "spine0" ); },
             { name = "m1"; address = "127.0.0.2"; port = $port; nodes = ( "leaf1", "spine1" ); } );
trunk_key = "a secret that the lab shares";
END
chmod 600 "$tmp/plain.conf"

nothing_ran() { [ -z "$(find "$tmp" -name 'PWNED*' -prune -print 2>/dev/null)" ] || fail "$1: something of a name has run: $(find "$tmp" -name 'PWNED*')"; }
i=0
for how in ssh runs again; do
    for name in '$(touch PWNED)' "it's \`touch PWNED\`; touch PWNED #" $'a  b "c" *?[x] ~ {a,b} | & < > !\ntouch PWNED'; do
        i=$((i + 1))
        [ $how != again ] || [ $i = 8 ] || continue
        mkdir -p "$tmp/confs/$name"
        at="$tmp/confs/$name/spread.conf"
        cp "$tmp/plain.conf" "$at"
        trib up "$at" --dilation 20000 --launch "$how" >"$tmp/up.out" 2>&1 || fail "$how, $name: $(cat "$tmp/up.out")"
        has 'fabric spread is up on machines m0, m1' "$tmp/up.out"
        cmp -s "$tmp/there/tributary-$(id -u)/spread/fabric.conf" "$at" || fail "$how, $name: another conf"
        nothing_ran "$how, $name"
        trib status spread --machines >"$tmp/status.out" 2>&1 || fail "$how: status: $(cat "$tmp/status.out")"
        has '^m1 \(127.0.0.2\):' "$tmp/status.out"
        has_not 'not there' "$tmp/status.out"
        trib capture spread h4-leaf1 -o "$tmp/none.pcapng" -t 0.2 --filter "$name" >"$tmp/capture.out" 2>&1 && fail "$how: a filter that is none"
        has 'm1' "$tmp/capture.out"
        nothing_ran "$how, --filter $name"
        trib link spread h4-leaf1 >"$tmp/link.out" 2>&1 || fail "$how: link: $(cat "$tmp/link.out")"
        has '^m1: h4:0 to leaf1:0: up' "$tmp/link.out"
        if [ "$name" = '$(touch PWNED)' ]; then
            trib capture spread h4-leaf1 -o "$tmp/some.pcapng" -t 0.5 --filter 'udp port 4791 and (host 10.0.0.1 or not host 10.0.0.2)' >"$tmp/capture.out" 2>&1 ||
                fail "$how: a filter: $(cat "$tmp/capture.out")"
            trib perf spread --algo ring -b 4K -e 4K -n 2 -w 0 --max-wall 20 >"$tmp/perf.out" 2>&1 || fail "$how: perf: $(cat "$tmp/perf.out")"
            has 'Out of bounds values : 0 OK' "$tmp/perf.out"
        fi
        trib down --machines >/dev/null || fail "$how: down"
        gone() { [ ! -d "$tmp/there/tributary-$(id -u)/spread" ]; }
        until_true 10 gone || fail "$how: the other machine's part stays"
    done
done
nothing_ran "in the end"
# what goes elsewhere is of an alphabet that no shell reads
grep -vE '^[A-Za-z0-9/._+,:= -]*$' "$tmp/words" >"$tmp/other.out" && fail "words that a shell reads: $(head -n 3 "$tmp/other.out")"
true
