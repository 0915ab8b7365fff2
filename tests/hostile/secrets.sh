#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The key of a conf in what its owner shows to others: results, time lines, reports, tables, messages; by any spelling that libconfig reads.
# Neither the key nor a hash of it is in any of them, and copies of a private conf are private.
# clock: virtual
. "$(dirname "$0")/../e2e/lib.sh"
cd "$tmp" || exit 1
spellings=(
    'trunk_key = "swordfish swordfish swordfish";'
    'trunk_key : "swordfish" "swordfish" "swordfish"'
    'trunk_key = /* "no" */ "swordfish swordfish"'
    $'trunk_key\n# "no"\n=\n// "no"\n"sword\\"fish swordfish swordfish";'
    'trunk_key = "\x73\x77\x6f\x72\x64fish swordfish swordfish";'
    $'/* = "x"; trunk_key = "swordfish" */ trunk_key = "swordfish"\n\t"swordfish swordfish";'
)
hides() { # hides WHAT FILE...
    local what=$1
    shift
    ! grep -qiE 'sword|\\x7|fish' "$@" || fail "$what: $(grep -iE 'sword|\\x7|fish' "$@" | head -c 300)"
}
last=
for i in "${!spellings[@]}"; do
    { grep -v '^name' "$conf/two-hosts.conf"; printf 'name = "two";\n%s\n' "${spellings[$i]}"; } >lab.conf
    trib sim lab.conf -b 4K -e 4K --algo ring -J "$i.json" --timeline "$i.line" >sim.out 2>&1 || fail "spelling $i: $(cat sim.out)"
    hides "results of spelling $i" "$i.json" "$i.line" sim.out
    jq -e '.run.files[0] | .secrets == "hidden" and (.text | contains("trunk_key"))' "$i.json" >jq.out || fail "spelling $i: $(jq -c .run.files "$i.json")"
    hash=$(jq -r '.run.files[0].sha256' "$i.json")
    [ "$hash" = "$(trib plan --no-secrets lab.conf | sha256sum | cut -d' ' -f1)" ] || fail "spelling $i: the hash is not that of what is shown"
    [ "$hash" != "$(sha256sum <lab.conf | cut -d' ' -f1)" ] || fail "spelling $i: the hash is that of the key's file"
    [ -z "$last" ] || [ "$hash" = "$last" ] || fail "spelling $i: another hash than that of another key"
    last=$hash
done
# what was kept runs again
jq -j '.run.files[0].text' 0.json >again.conf
trib sim again.conf -b 4K -e 4K --algo ring -J again.json >sim.out 2>&1 || fail "run again: $(cat sim.out)"
cmp <(jq .results 0.json) <(jq .results again.json) || fail "run again, other results"

# mistakes: neither messages nor what is left of results show it
for bad in 'trunk_key = "swordfish swordfish" }' 'trunk_key = "swordfish swordfish"; trunk_key = "swordfish";' 'trunk_key = 5; # swordfish' 'trunk_key = "swordfish";' \
    'trunk_key = swordfish;' 'trunk-key = "swordfish swordfish";' 'TRUNK_KEY = "swordfish swordfish";' 'trunk_key = ( "swordfish", "swordfish" );' \
    $'trunk_key = "swordfish swordfish\n"; }' 'leaf_spine = { trunk_key = "swordfish swordfish"; };'; do
    { grep -v '^name' "$conf/two-hosts.conf"; printf '%s\n' "$bad"; } >bad.conf
    rm -f bad.json
    trib sim bad.conf -b 4K -e 4K --algo ring -J bad.json >bad.out 2>&1 && fail "found $bad taken"
    trib plan bad.conf >plan.out 2>&1 && fail "found $bad taken by trib plan"
    touch bad.json
    hides "$bad" bad.out plan.out bad.json
    trib plan --no-secrets bad.conf >plan.out 2>&1
    hides "--no-secrets $bad" plan.out
done

# the report, and Python's sweeps: what is done is known by the hash that is shown
export PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=$tmp/mpl PYTHONPATH=$root/python
if /usr/bin/python3 -c 'import pandas, matplotlib, libconf' 2>/dev/null; then
    trib report 0.json -o report.html >report.out 2>&1 || fail "report: $(cat report.out)"
    hides report report.html
    # results of others, or of a version that hid less
    jq '.run.files[0].text = "trunk_key = \"\\x73wordfish\" \"swordfish\"; # swordfish" | del(.run.files[0].secrets)' 0.json >old.json
    trib report old.json -o old.html >report.out 2>&1 || fail "report of old results: $(cat report.out)"
    hides "report of old results" old.html
    /usr/bin/python3 - >python.out 2>&1 <<'END' || fail "Python: $(cat python.out)"
import os, tributary as t
c = t.Conf.load("lab.conf")
assert "sword" not in repr(c), repr(c)
assert c["trunk_key"].startswith("sword")
assert os.stat(c.write("copy.conf")).st_mode & 0o777 == 0o600
frame = t.sweep(["lab.conf", c.copy(name="own")], sizes="4K", algos="ring", dir="sweep", progress=False)
assert os.stat("sweep/own.conf").st_mode & 0o777 == 0o600
assert "sword" not in repr(frame.attrs), frame.attrs
again = t.sweep(["lab.conf", c.copy(name="own")], sizes="4K", algos="ring", dir="sweep", progress=False)
assert again.attrs["sweep"]["found"] == 2, again.attrs["sweep"]
END
    hides "files of a sweep" sweep/*.json sweep/*.out sweep/list
fi

# copies of a conf that only its owner reads are as private
chmod 600 lab.conf
umask 022
"$root/scripts/trib-sweep" --vary mtu=1024,4096 vary lab.conf all_reduce --algo ring -b 4K -e 4K >vary.out 2>&1 || fail "vary: $(cat vary.out)"
for f in vary/*.conf; do [ "$(stat -c %a "$f")" = 600 ] || fail "found mode $(stat -c %a "$f") of $f, expected 600 as of its conf"; done
hides "a varied sweep" vary/*.json vary/*.out vary.out vary/list
chmod 644 lab.conf # it has a key nevertheless
rm -rf vary
"$root/scripts/trib-sweep" --vary mtu=1024,4096 vary lab.conf all_reduce --algo ring -b 4K -e 4K >vary.out 2>&1 || fail "vary: $(cat vary.out)"
for f in vary/*.conf; do [ "$(stat -c %a "$f")" = 600 ] || fail "found mode $(stat -c %a "$f") of $f, which has a key"; done
for ranks in 2; do trib sim lab.conf -g $ranks --algo ring -b 1M -e 64M -f 2 --place out -J measured.json >sim.out 2>&1 || fail "$(cat sim.out)"; done
chmod 600 lab.conf
trib calibrate -o fitted.conf lab.conf measured.json >calibrate.out 2>&1 || fail "calibrate: $(cat calibrate.out)"
[ "$(stat -c %a fitted.conf)" = 600 ] || fail "found mode $(stat -c %a fitted.conf) of a calibrated private conf"
hides calibrate calibrate.out
echo "hostile: a conf's key is in nothing that is shown: ${#spellings[@]} spellings, 10 mistakes, report, sweeps, calibrated and varied confs"
