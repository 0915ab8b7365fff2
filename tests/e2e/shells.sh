#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/shells.sh, a part of make lint, finds each way to hand a text to a shell, and nothing in what is alike.
. "$(dirname "$0")/lib.sh"
finds() { # finds NAME TEXT
    printf '%s\n' "$2" >"$tmp/$1"
    "$root/scripts/shells.sh" "$tmp/$1" >"$tmp/found.out" && fail "does not find: $2"
    has "shells: $tmp/$1:[0-9]+:.*found a text for a shell" "$tmp/found.out"
}
takes() {
    printf '%s\n' "$2" >"$tmp/$1"
    "$root/scripts/shells.sh" "$tmp/$1" >"$tmp/found.out" || fail "finds: $2: $(cat "$tmp/found.out")"
}
for text in '    rc = system(cmd);' 'FILE *f = popen (line, "re");' '    execl("/bin/sh", "sh", "-c", text, (char *)NULL);' 'if (wordexp(s, &w, 0))'; do finds planted.c "$text"; done
for text in 'subprocess.run(line, shell=True)' 'os.system("ls " + name)' 'os.popen(x)' 'subprocess.getoutput(x)' "Popen(['bash', '-c', line])"; do
    finds planted.py "$text"
    finds planted "#!/usr/bin/env python3"$'\n'"$text"
done
for text in 'eval "$line"' '    [ -z "$x" ] || eval $x' 'bash -c "ls $1"' 'ssh "$m" sh -c "$line"' 'x=$(sh -ec $line)'; do
    finds planted.sh "$text"
    finds planted "#!/bin/sh"$'\n'"$text"
done
takes fine.c '    file_system(x); /* as system(3) */ op->system(x);'
takes fine.py 'subprocess.run(["ls", name])'
takes fine.sh "sh -c 'exec \"\$@\"' sh \"\$@\"; evaluate x"$'\n# eval $x'
"$root/scripts/shells.sh" >"$tmp/all.out" || fail "$(cat "$tmp/all.out")"
