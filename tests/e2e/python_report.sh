#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib report: a page of one file, of several, of jobs, a training step and time lines; whole and closed HTML without anything from elsewhere;
# hostile names are text; what is no file of results is refused; axe finds nothing serious, in light, dark and print.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=$tmp/mpl
$python -c 'import pandas, matplotlib' 2>/dev/null || skip "no pandas or matplotlib for $python (scripts/setup.sh python)"
cd "$tmp" || exit 1
sim() { trib sim "$@" >sim.out 2>&1 || fail "trib sim $*"; }
report() { "$root/scripts/trib" report "$@" >report.out 2>&1; }

sim leaf-spine-8 --algo ring,sharp -b 64K -e 256K --counters -J a.json --timeline line.json
sim single-switch-4 all_gather -b 64K -e 256K --payload none --place out -J b.json
sim leaf-spine-8 --jobs "$conf/jobs/eight.conf" -J jobs.json
report a.json line.json || fail "report: $(cat report.out)"
cp report.html first.html
report a.json line.json && cmp report.html first.html || fail "two reports of the same differ"
report a.json b.json jobs.json line.json -o all.html --title 'Four <kinds> & "more"' || fail "several: $(cat report.out)"

# whole: elements close, ids are unique, what is pointed at is there, nothing is fetched, no script runs
cat >whole.py <<'END'
import re, sys
from html.parser import HTMLParser
VOID = {"meta", "path", "rect", "use", "circle", "line", "br"}
class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.to, self.bad = [], [], [], []
    def handle_startendtag(self, tag, attrs): self.take(tag, attrs)
    def handle_starttag(self, tag, attrs):
        self.take(tag, attrs)
        if tag not in {"meta", "br"}: self.open.append(tag)
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag: self.bad.append(f"</{tag}> at {self.getpos()}")
    def take(self, tag, attrs):
        if tag in ("script", "iframe", "object", "embed", "link", "img"): self.bad.append(f"<{tag}>")
        for k, v in attrs:
            if k == "id": self.ids.append(v)
            elif k.startswith("on"): self.bad.append(f"{tag} {k}")
            elif k in ("href", "xlink:href", "src"):
                (self.to if v.startswith("#") else self.bad).append(v.lstrip("#"))
            self.to += re.findall(r"url\(#([^)]*)\)", v or "")
p = Page()
text = open(sys.argv[1], encoding="utf-8").read()
p.feed(text)
p.close()
twice = {i for i in p.ids if p.ids.count(i) > 1}
lost = set(p.to) - set(p.ids)
assert not p.open and not p.bad and not twice and not lost, (p.open, p.bad, twice, lost)
assert len(re.findall(r"<svg[^>]*aria-label", text)) == len(re.findall("<svg", text)) >= int(sys.argv[2])
for words in sys.argv[3:]:
    assert words in text, words
END
$python whole.py report.html 6 '<h2 id="bandwidth-and-time">' 'all reduce on leaf-spine-8' 'trib-sim' 'virtual time, exact' '80 to 100 %' 'The critical path' || fail "one file"
$python whole.py all.html 8 'Four &lt;kinds&gt; &amp; &quot;more&quot;' 'jobs of jobs' 'more beside the others' 'all_gather' || fail "several"

# a file for each algorithm, as sweeps write them, are compared; files that have the same points are told apart by their names
for a in sharp ring tree; do sim leaf-spine-8 --algo $a -b 64K -e 256K -J one-$a.json; done
report one-*.json -o sweep.html || fail "a file for each algorithm: $(cat report.out)"
$python whole.py sweep.html 3 'How many times as fast as ring, all reduce' || fail "a file for each algorithm"
has_not 'leaf-spine-8, one-ring' sweep.html
cp one-ring.json again.json
report one-ring.json again.json one-sharp.json -o twice.html || fail "the same twice: $(cat report.out)"
$python whole.py twice.html 2 'leaf-spine-8, one-ring' 'leaf-spine-8, again' || fail "the same twice"
sim single-switch-4 --algo sharp -b 64K -e 256K -J other-conf.json
report one-ring.json other-conf.json -o apart.html || fail "two algorithms on two fabrics: $(cat report.out)"
$python whole.py apart.html 2 || fail "two algorithms on two fabrics"
has_not 'speed-up' apart.html

# an algorithm has the same colour in every figure of a page, whichever others are in it
cat >colours.py <<'END'
import sys
from tributary import plot
from tributary.report import figures, page
kept = []
figures.drawn = lambda make, name, label: kept.append({line.get_label(): line.get_color() for line in make().get_lines() if not line.get_label().startswith("_")}) or ""
page.make(sys.argv[1:])
colours = {}
for figure in kept:
    for algo, colour in figure.items():
        assert colours.setdefault(algo, colour) == colour, (algo, kept)
assert len(kept) >= 5 and len(set(colours.values())) == len(colours) == 4, kept
END
sim leaf-spine-8 all_gather --algo direct,ring -b 64K -e 256K -J gather.json
PYTHONPATH=$root/python MPLBACKEND=agg $python colours.py one-ring.json one-sharp.json one-tree.json gather.json >colours.out 2>&1 || fail "colours: $(cat colours.out)"

# a folder of trib-sweep --vary: labels are the keys that differ, below the data, each series looks its own; a folder of nothing
cat >swept.py <<'END'
import sys
from tributary import plot
from tributary.report import figures, page
def drawn(make, name, label):
    ax = make()
    ax.figure.canvas.draw()
    looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in ax.get_lines() if not line.get_label().startswith("_")]
    assert len(set(looks)) == len(looks), looks
    assert ax.get_position().width > 0.8 and ax.get_window_extent().height > 250, ax.get_position()
    kept.append([text.get_text() for text in ax.get_legend().get_texts()])
    return ""
kept = []
figures.drawn = drawn
found = page.make(sys.argv[1:])
assert "<h1>all reduce on leaf-spine-8</h1>" in found, found[:2000]
assert "ring, spine_link.rate=300Gb_s, reduce.window=64" in kept[0], kept
END
mkdir swept nothing
for r in 100 200 300 400 500; do
    jq ".conf = \"/x/leaf-spine-8,leaf_spine.spine_link.rate=${r}Gb_s,reduce.window=64,mtu=4096.conf\"" one-ring.json >swept/0000${r%00}.json
done
jq '.conf = "/x/leaf-spine-8,leaf_spine.spine_link.rate=100Gb_s,reduce.window=512,mtu=4096.conf"' one-sharp.json >swept/00006.json
PYTHONPATH=$root/python MPLBACKEND=agg $python swept.py swept/*.json >swept.out 2>&1 || fail "a sweep's folder: $(cat swept.out)"
report swept -o swept.html || fail "a folder: $(cat report.out)"
report nothing -o nothing.html && fail "an empty folder: exit code 0"
has 'nothing: found no ..json in it, expected files of trib' report.out

# a training step: where its time goes, in words
cat >work.conf <<'END'
name = "small"; device = "h100";
model = { layers = 2; d_model = 1024; d_ff = 4096; heads = 16; vocabulary = 32768; };
training = { type = "bf16"; sequence = 512; batch_tokens = 4096; utilisation = "40%"; };
parallel = { tp = 2; dp = 2; pp = 2; zero = 1; microbatches = 2; };
END
sim rail-2x4 --workload work.conf -J step.json
report step.json -o step.html || fail "a step: $(cat report.out)"
$python whole.py step.html 1 'Where the time of a training step of small on rail-2x4, 8 GPUs goes' 'exposed: tensor' 'pipeline bubble (ms)' 'what binds' || fail "a step"
has_not 'time_us|extrapolated_bytes|\.algo|high_us' step.html

# its bars are as long as the step, also where no parallelism alone accounts for all that is exposed
cat >bars.py <<'END'
import json, sys
from tributary.report import figures, page
kept = []
figures.drawn = lambda make, name, label: kept.append(make()) or ""
found = page.make(sys.argv[1:])
step = json.load(open(sys.argv[1]))
ends = [max(p.get_x() + p.get_width() for p in kept[0].patches if round(p.get_y() + p.get_height() / 2) == i) for i in range(3)]
for key, end in zip(("hosts", "nvswitches", "switches"), ends):
    assert abs(end - step[key]["step_us"] / 1e3) < 2e-3 * end, (key, end, step[key])
assert "e-" not in found.split("<tbody>")[1].split("</tbody>")[0], found
END
jq '.pipeline_us = 1.9e-9 | .hosts.step_us = .math_us * 2 | .hosts.exposed_us = .math_us | .hosts.exposed_by_us = {"data": (.math_us * 0.3), "tensor": (.math_us * 0.5)}
    | .nvswitches = .hosts | .switches = .hosts' step.json >overlap.json
PYTHONPATH=$root/python MPLBACKEND=agg $python bars.py overlap.json >bars.out 2>&1 || fail "bars: $(cat bars.out)"

# hostile text in every place that a file has
cat >hostile.py <<'END'
import json, sys
EVIL = '</script><img src=x onerror=alert(1)>$\\frac'
def spoil(v, key=""):
    if isinstance(v, dict): return {k: spoil(x, k) for k, x in v.items()}
    if isinstance(v, list): return [spoil(x, key) for x in v]
    if isinstance(v, str) and key not in ("collective", "link", "text"): return v + EVIL
    return v + EVIL if key == "text" else v
d = json.load(open(sys.argv[1]))
json.dump(spoil(d), open(sys.argv[2], "w"))
END
$python hostile.py a.json evil.json
report evil.json -o evil.html || fail "hostile: $(cat report.out)"
$python whole.py evil.html 3 'onerror=alert(1)&gt;' || fail "hostile text"

# files that are none, and runs that did not end
refused() { # refused WORDS FILE...
    report "${@:2}" -o bad.html && fail "$2: exit code 0"
    has "$1" report.out
    has_not 'Traceback' report.out
    [ ! -e bad.html ] || fail "$2: a page"
}
echo '{"results": [' >half.json
echo '[1]' >list.json
echo '{"a": 1}' >other.json
jq '.schema = 99' a.json >future.json
echo '{"otherData": {}, "traceEvents": []}' >empty_line.json
jq '.results[0].size_bytes = "many"' a.json >types.json
jq 'del(.results[0].time_us)' a.json >lacks.json
refused 'half.json: found no JSON' half.json
refused 'list.json: found no object' list.json
refused 'other.json: found neither rows nor a time line' other.json
refused 'future.json: found schema 99, expected 1' future.json
refused 'empty_line.json: found no operation' empty_line.json
refused 'types.json: found size_bytes .many. in results.0., expected a number' types.json
refused 'lacks.json: found time_us None in results.0., expected a number' lacks.json
refused 'nothing.json: No such file' nothing.json
refused 'found no RESULT'
report a.json -o a.json && fail "-o of a result: exit code 0"
jq -e . a.json >jq.out || fail "a result was overwritten"
jq '.results = [] | .error = "stopped <early>"' a.json >stopped.json
report stopped.json -o stopped.html || fail "stopped: $(cat report.out)"
$python whole.py stopped.html 0 'No row was measured: stopped &lt;early&gt;' || fail "stopped"
jq '.results |= map(.fidelity = {ok: false, p99_lag_us: 3, dilation_needed: 900} | del(.times_us, .min_us, .median_us, .p99_us, .stddev_us, .links, .wrong)) | del(.virtual)' a.json >lag.json
report lag.json -o lag.html || fail "lag: $(cat report.out)"
$python whole.py lag.html 3 'rows lag' 'lag, needs dilation 900' || fail "lag"

axe=$root/build/axe/axe_core_python/axe.min.js
command -v chromium >/dev/null && [ -f "$axe" ] || skip "all but axe: no chromium or no axe-core (make python-test)"
for theme in light dark print; do
    $python "$root/tests/tools/axe_check.py" all.html "$axe" $theme >axe.out 2>&1
    rc=$?
    [ $rc = 77 ] && skip "all but axe: $(tail -n 1 axe.out)"
    [ $rc = 0 ] || fail "axe, $theme: $(cat axe.out)"
done
