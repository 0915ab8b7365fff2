#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Files that strangers hand on, and names that they choose, for everything of Python that reads: files that are nearly right, of several hundred
# kinds for each reader (tests/tools/mutate_files.py), FIFOs, names that are paths, that have lines or that a terminal obeys. Each is refused by
# one sentence, in a time that is linear in the file.
# clock: virtual
. "$(dirname "$0")/../e2e/lib.sh"
cd "$tmp" || exit 1
export PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=$tmp/mpl PYTHONPATH=$root/python
python=/usr/bin/python3
trib sim leaf-spine-8 --algo ring,sharp -b 64K -e 64K --counters -J a.json --timeline line.json >sim.out 2>&1 || fail "$(cat sim.out)"
trib sim two-hosts --algo ring -b 4K -e 16K -J b.json >sim.out 2>&1 || fail "$(cat sim.out)"

mutate() { timeout 600 $python "$root/tests/tools/mutate_files.py" "$@" >mutate.out 2>&1 || fail "$(tail -n 12 mutate.out)"; tail -n 1 mutate.out; }
mutate explain 1 150 line.json
mutate calibrate 1 250 "$root"/tests/e2e/calibrate/*.{txt,json}
mutate import 1 150 "$root"/tests/e2e/import/*
package=
if $python -c 'import pandas, matplotlib, libconf' 2>/dev/null; then
    package=yes
    mutate results 1 150 a.json b.json
    mutate conf 1 150 "$conf"/*.conf
    mutate report 1 60 b.json a.json
    mutate timeline 1 40 line.json
fi

# ---- the commands themselves ----
said() { # said COMMAND...: refuses, by one line without control characters, at once
    local rc
    timeout -k 2 30 "$@" >said.out 2>said.err </dev/null
    rc=$?
    [ $rc = 1 ] || [ $rc = 2 ] || fail "found exit code $rc of $*, expected 1 or 2: $(head -c 300 said.err)"
    [ "$(wc -l <said.err)" = 1 ] || fail "found $(wc -l <said.err) lines of $*, expected one: $(head -c 500 said.err)"
    ! LC_ALL=C grep -q '[[:cntrl:]]' said.err || fail "found control characters in what $* says: $(cat -v said.err)"
}
mkfifo fifo
esc=$'x\033]0;gone\007\n# trunk'
printf '{"results": [1]}' >one.json
printf '{"results": [1]}' >"$esc.json"
for f in fifo one.json "$esc.json" /dev/zero . nothing.json; do
    said "$root/scripts/trib-explain" "$f"
    said "$root/scripts/trib-calibrate" -o out.conf two-hosts "$f"
    said "$root/scripts/trib-import" "$f"
    [ -z "$package" ] || said $python "$root/scripts/trib-report" "$f" -o out.html
done
rm -f out.conf out.html
# a name becomes no line of a conf, nor a word of a list
good=$(grep -lE '^<system' "$root"/tests/e2e/import/* | head -n 1)
cp "$good" $'a\nname = "other"; #.xml'
said "$root/scripts/trib-import" $'a\nname = "other"; #.xml'
cp "$conf/two-hosts.conf" $'two\nhosts.conf'
said "$root/scripts/trib-sweep" --vary mtu=1024 vary $'./two\nhosts.conf' all_reduce
said "$root/scripts/trib-sweep" fifo swept

# ---- confs in Python ----
if [ -n "$package" ]; then
    mkdir victim
    echo 'name = "victim";' >victim/v.conf
    echo 'name = "other";' >other.conf
    timeout 60 $python - >python.out 2>&1 <<'END' || fail "Python: $(cat python.out)"
import tributary as t

def refused(what, words, *args, **keys):
    try:
        what(*args, **keys)
    except (ValueError, OSError) as e:
        assert words in str(e) and all(c.isprintable() for c in str(e)), repr(str(e))
    else:
        raise SystemExit(f"found {args} {keys} taken")

text = open("two\nhosts.conf").read()
for name in ("victim/v", "../victim/v", "/tmp/v", "..", ".v", "", "a\nb", "x" * 32, "-v", "\x1b[2J", "é"):
    c = t.Conf.parse(text).copy(name=name)
    refused(c.plan, "name: found")
    refused(t.run, "name: found", c, sizes="4K", algos="ring")
    refused(t.sweep, "name: found", c, sizes="4K", algos="ring", dir="d", progress=False)
for before in ("", " ", "\t", "\ufeff", "\f", "\xa0", "\x1c", "\u2028", "# x\n", "/*\n"):
    for file in ("other.conf", "fifo", "/dev/zero"):
        refused(t.Conf.parse, "found", f'{before}@include "{file}"\n{text}')
        open("include.conf", "w").write(f'{before}@include "{file}"\n{text}')
        refused(t.Conf.load, "found", "include.conf")
refused(t.Conf.load, "", "fifo")
assert t.Conf.load("two\nhosts.conf").copy(name="fine").plan()
END
    [ "$(cat victim/v.conf)" = 'name = "victim";' ] || fail "another conf was overwritten: $(cat victim/v.conf)"
fi
echo "hostile: readers refuse what is nearly right, FIFOs, paths and lines in names by one sentence"
