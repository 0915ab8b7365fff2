#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A file of results has what it takes to run it again, every key of it is documented, and reruns are the same to the byte.
# clock: virtual
. "$(dirname "$0")/lib.sh"

n=0
sim() { # sim FILE ARG...
    n=$((n + 1))
    trib sim "${@:2}" -J "$1" >"$tmp/sim.out" 2>&1 || fail "trib sim ${*:2}: $(cat "$tmp/sim.out")"
}
cp "$conf/leaf-spine-8.conf" "$tmp/mine.conf"
cat >"$tmp/loss.conf" <<'EOF'
faults = ( { at = "2us"; link = "h0-leaf0"; loss = 0.01; } );
EOF
sim "$tmp/1.json" "$tmp/mine.conf" --algo ring,sharp -b 64K -e 64K --faults "$tmp/loss.conf" --seed 5 --counters
sim "$tmp/2.json" "$tmp/mine.conf" --algo ring,sharp -b 64K -e 64K --faults "$tmp/loss.conf" --seed 5 --counters
cmp "$tmp/1.json" "$tmp/2.json" || fail "two runs differ"
jq -e '.schema == 1 and .run.version == .version and (.run.commit | length) > 0 and (.run | has("date") or has("machine") | not)' "$tmp/1.json" >"$tmp/run.out" ||
    fail "run: $(jq .run "$tmp/1.json")"
[ "$(jq -r '.run.files[0].sha256' "$tmp/1.json")" = "$(sha256sum <"$tmp/mine.conf" | cut -d ' ' -f 1)" ] || fail "hash of the conf"
jq -e --arg c "$tmp/mine.conf" '.run.command == ["trib-sim", $c, "--algo", "ring,sharp", "-b", "64K", "-e", "64K", "--faults"] + .run.command[9:]' "$tmp/1.json" >"$tmp/run.out" ||
    fail "command: $(jq -c .run.command "$tmp/1.json")"

# from the file alone, with other confs in the place of those that were used
for i in 0 1; do jq -j ".run.files[$i].text" "$tmp/1.json" >"$tmp/again.$i"; done
cmp "$tmp/again.0" "$tmp/mine.conf" && cmp "$tmp/again.1" "$tmp/loss.conf" || fail "texts of files"
echo 'name = "other";' >"$tmp/mine.conf"
mapfile -t words < <(jq -r '.run.command[2:][]' "$tmp/1.json" | sed "s|^$tmp/loss.conf\$|$tmp/again.1|")
sim "$tmp/3.json" "$tmp/again.0" "${words[@]}"
cmp <(jq .results "$tmp/1.json") <(jq .results "$tmp/3.json") || fail "run again from the file, other results"

# every key
sim "$tmp/4.json" leaf-spine-8.conf --background-flow h0:h4 -b 64K -e 64K --algo auto,sharp,ring --error
sim "$tmp/5.json" leaf-spine-8.conf -b 64K -e 64K --algo switchml
sim "$tmp/6.json" h100-node.conf --algo nvls -b 64K -e 64K --mm-self
sim "$tmp/7.json" leaf-spine-8.conf alltoall --sparse 3 --algo direct -b 64K -e 64K
own='paths | map(select(type == "string")) | select(length > 0) | select(index("protocol") == null or .[-1] == "protocol") | select(index("drops") == null or .[-1] == "drops") | .[-1]'
jq -r "$own" "$tmp"/[1-7].json | sort -u >"$tmp/keys"
[ "$(grep -c . "$tmp/keys")" -gt 60 ] || fail "found few keys: $(cat "$tmp/keys")"
while read -r key; do
    grep -qE "\`([a-z]+\.)?$key\`" "$root/docs/results.md" || fail "docs/results.md has no $key"
done <"$tmp/keys"

# times of operations, one by one: on a link that loses frames they differ
sim "$tmp/t.json" "$tmp/again.0" --algo ring,sharp -b 64K -e 64K -n 200 --faults "$tmp/loss.conf" --seed 5
times_ok "$tmp/t.json"
jq -e 'all(.results[]; .iters == 200 and .min_us < .median_us and .median_us < .p99_us and .stddev_us > 0)' "$tmp/t.json" >"$tmp/times.out" ||
    fail "times of operations: $(jq -c '.results[] | del(.times_us)' "$tmp/t.json")"
sim "$tmp/t1.json" "$tmp/again.0" --algo sharp -b 64K -e 64K -n 1
times_ok "$tmp/t1.json"
# too many to list have statistics
sim "$tmp/t2.json" two-hosts.conf -g 1 -b 8 -e 8 -n 100000
jq -e 'all(.results[]; .times_us == null and .min_us <= .median_us and .median_us <= .p99_us)' "$tmp/t2.json" >"$tmp/times.out" ||
    fail "100000 operations: $(jq -c '.results[]' "$tmp/t2.json" | cut -c 1-200)"

# rows in the order of the command line
sim "$tmp/o.json" leaf-spine-8.conf -b 64K -e 256K --algo tree,ring,sharp -d int32,float -o max,sum --place out --csv "$tmp/o.csv"
for algo in tree ring sharp; do for size in 65536 262144; do for type in int32 float; do for op in max sum; do
    echo "$algo,$size,$type,$op"
done; done; done; done >"$tmp/order"
jq -r '.results[] | "\(.algo),\(.size_bytes),\(.type),\(.op)"' "$tmp/o.json" | diff "$tmp/order" - || fail "order of rows in the JSON"
tail -n +2 "$tmp/o.csv" | cut -d , -f 2,3,5,6 | diff "$tmp/order" - || fail "order of rows in the CSV"
grep -oE '^# (Algorithm: .*|.* against .*,)' "$tmp/sim.out" >"$tmp/heads"
printf '# %s\n' 'Algorithm: tree' 'Algorithm: ring' 'Algorithm: sharp' 'ring against tree,' 'sharp against tree,' | diff - "$tmp/heads" || fail "order of the table"

# the same as CSV: keys as columns, values as in the JSON; text with commas is one cell
trib sim leaf-spine-8.conf --algo auto,switchml -b 64K -e 256K -J "$tmp/c.json" --csv "$tmp/c.csv" >"$tmp/sim.out" 2>&1 || fail "--csv: $(cat "$tmp/sim.out")"
python3 - "$tmp/c.json" "$tmp/c.csv" >"$tmp/csv.out" 2>&1 <<'EOF' || fail "$(cat "$tmp/csv.out")"
import csv, json, sys
def flat(o, name=""):
    for k, v in o.items():
        if isinstance(v, dict):
            yield from flat(v, name + k + ".")
        elif not isinstance(v, list):
            yield name + k, v
rows = [dict(flat(r)) for r in json.load(open(sys.argv[1]))["results"]]
table = list(csv.DictReader(open(sys.argv[2], newline="")))
assert len(rows) == len(table) == 8, (len(rows), len(table))
assert any("," in str(r.get("why", "")) for r in rows), "no text with a comma"
for r, t in zip(rows, table):
    assert set(r) <= set(t), set(r) - set(t)
    for k in t:
        v = r.get(k)
        want = "" if v is None else "true" if v is True else "false" if v is False else v
        assert float(t[k]) == float("%.9g" % v) if isinstance(v, (int, float)) and not isinstance(v, bool) else t[k] == want, (k, t[k], v)
EOF
trib sim leaf-spine-8.conf -b 4K -e 4K --csv /dev/full >"$tmp/full.out" 2>&1 && fail "a full disk: exit code 0"
has 'cannot write /dev/full: No space' "$tmp/full.out"
# "-" is standard output, and nothing else is there
trib sim two-hosts.conf -b 4K -e 4K -J - 2>"$tmp/table.out" | jq -e '.results | length == 4' >/dev/null || fail "-J -"
has '^# Out of bounds values : 0 OK' "$tmp/table.out"
trib sim two-hosts.conf -b 4K -e 4K --timeline - 2>/dev/null | jq -e .traceEvents >/dev/null || fail "--timeline -"
trib model two-hosts.conf -J - 2>/dev/null | jq -e .results >/dev/null || fail "trib model -J -"
[ "$(trib sim two-hosts.conf -b 4K -e 4K --csv - 2>/dev/null | wc -l)" = 5 ] || fail "--csv -"
trib sim two-hosts.conf -b 4K -e 4K -J - --csv - >"$tmp/both.out" 2>&1 && fail "- for both: exit code 0"
has "found -, which is -J's file" "$tmp/both.out"
trib sim leaf-spine-8.conf -b 4K -e 4K -J "$tmp/same" --csv "$tmp/same" >"$tmp/same.out" 2>&1 && fail "one file for both: exit code 0"
has "found $tmp/same, which is -J's file" "$tmp/same.out"
trib plan leaf-spine-8.conf --svg --dot >"$tmp/same.out" 2>&1 && fail "two pictures at once: exit code 0"
has 'found several of --svg, --dot' "$tmp/same.out"

# what is not plain text, and results in real time
trib sim <(printf '# \377\n'; cat "$conf/two-hosts.conf") -b 4K -e 4K -J "$tmp/8.json" >"$tmp/sim.out" 2>&1
[ ! -e "$tmp/8.json" ] || jq -e '.run.files[0] | has("text") | not' "$tmp/8.json" >"$tmp/run.out" || fail "text of a pipe: $(jq .run "$tmp/8.json")"
printf '# \377\n' >"$tmp/odd.conf"
cat "$conf/two-hosts.conf" >>"$tmp/odd.conf"
sim "$tmp/9.json" "$tmp/odd.conf" -b 4K -e 4K
jq -e '.run.files[0].text | startswith("# ?\n")' "$tmp/9.json" >"$tmp/run.out" || fail "text that is not UTF-8"

# A run that ends early names what it did not measure: here a rank dies in the first row.
echo 'faults = ( { at = "20us"; rank = 1; die = true; } );' >"$tmp/die.conf"
trib sim single-switch-4 --algo ring,direct --place out -b 64K -e 1M --faults "$tmp/die.conf" -J "$tmp/early.json" >"$tmp/sim.out" 2>&1 && fail "a rank that dies: exit code 0"
jq -e '(.error | length > 0) and (.results | length == 1) and ([.not_measured[] | [.algo, .size_bytes, .in_place]] ==
    [["ring", 262144, false], ["ring", 1048576, false], ["direct", 65536, false], ["direct", 262144, false], ["direct", 1048576, false]]) and
    all(.not_measured[]; .reason == "not run: the run ended before it")' "$tmp/early.json" >"$tmp/jq.out" || fail "not measured: $(jq -c '[.results[].size_bytes], .not_measured' "$tmp/early.json")"
