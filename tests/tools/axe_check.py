#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs axe-core on a page in headless Chromium: axe_check.py PAGE AXE.JS light|dark|print. Prints serious and critical violations; exit status 1:
there are some, 77: Chromium does not run here. The page forbids scripts, so a copy without that line is looked at."""
import html
import json
import os
import re
import subprocess
import sys
import tempfile

page, axe, theme = sys.argv[1:]
with open(page, encoding="utf-8") as f:
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", f.read())
with open(axe, encoding="utf-8") as f:
    script = f.read()
if theme == "print":  # what is for print holds on the screen
    text = text.replace("@media print", "@media all")
run = """axe.run({resultTypes: ['violations']}).then(r => { const p = document.createElement('pre'); p.id = 'axe-result';
 p.textContent = JSON.stringify(r.violations.map(v => [v.impact, v.id, v.help, v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)), r.passes.length])
 .concat([['passes', r.passes.length]])); document.body.append(p) })"""
with tempfile.TemporaryDirectory() as folder:
    copy = os.path.join(folder, "page.html")
    with open(copy, "w", encoding="utf-8") as f:
        f.write(text.replace("</body>", f"<script>{script}</script><script>{run}</script></body>"))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--virtual-time-budget=20000", "--dump-dom", f"file://{copy}"]
    if theme == "dark":
        command.insert(1, "--blink-settings=preferredColorScheme=0")
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
found = re.search(r'<pre id="axe-result">(.*?)</pre>', done.stdout, re.S)
if not found:
    print(f"chromium gave no result: {done.stderr[-300:]}")
    sys.exit(77 if not done.stdout else 1)
result = json.loads(html.unescape(found.group(1)))
passes = result.pop()[1]
bad = [v for v in result if v[0] in ("serious", "critical")]
for v in result:
    print(*v[:4])
print(f"{theme}: {passes} rules pass, {len(result)} violations, {len(bad)} serious or critical")
sys.exit(bool(bad) or passes < 10)
