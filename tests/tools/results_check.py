#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Confs, runs and results of the package `tributary`: results_check.py CONF_DIR SCRATCH. Says what is wrong, or that all is right."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import tributary
from tributary import Conf, TribError

confs, scratch = Path(sys.argv[1]), Path(sys.argv[2])


def refused(kind, text, call):
    try:
        call()
    except kind as e:
        assert text in str(e), f"found {e!s:.300}, expected {text}"
        return e
    raise AssertionError(f"expected {kind.__name__}: {text}")


def plan(path, *options):
    """trib plan without the path in its first line."""
    text = tributary._trib.output(["plan", *options, str(path)])
    return text.replace(str(path), "FILE")


def round_trips():
    files = sorted(confs.glob("*.conf"))
    assert len(files) > 30, files
    for file in files:
        again = Conf.load(file).write(scratch / "again.conf")
        options = ["-v"] if file.stat().st_size < 2000 and "superpod" not in file.name else []
        assert plan(again, *options) == plan(file, *options), file
        assert Conf.load(again) == Conf.load(file), file


def conf_objects():
    c = Conf.load("leaf-spine-8", name="slow")
    c["spine_link"]["rate"] = "200Gb/s"
    c["host_link.latency"] = "1us"
    c["leaf_spine.spine_link.buffer"] = "2MiB"
    c["pfc_watchdog"] = "200ms"
    assert c["leaf_spine"]["host_link"] == {"rate": "400Gb/s", "latency": "1us"}
    assert c["spine_link"] == {"rate": "200Gb/s", "latency": "300ns", "cables": 1, "buffer": "2MiB"}
    assert "200Gb/s" in c.plan() and "Fabric slow" in c.plan()
    assert Conf.parse(c.text()) == c and c.copy(mtu=1024)["mtu"] == 1024 and c["mtu"] == 4096
    del c["buffer"]
    assert "buffer" not in c
    refused(KeyError, "leaf_spine.host_link.rate, leaf_spine.spine_link.rate", lambda: c["rate"])
    refused(KeyError, "expected one of name", lambda: c["spine"])
    refused(KeyError, "expected one of name", lambda: c.__setitem__("spin.rate", 1))
    e = refused(TribError, 'unknown key "mtux"', lambda: c.copy(mtux=1, spinx=2).plan())
    assert "spinx" in str(e) and e.code == 1, "every mistake is named"
    refused(FileNotFoundError, "found no conf file 'nowhere'", lambda: Conf.load("nowhere"))
    refused(ValueError, "row 2, column 5", lambda: Conf.parse("a = 1;\nb = ;"))
    for template, hosts in (("leaf-spine", 8), ("single-switch", 4), ("full-mesh", 4), ("gpu-node", 8), ("rails", 32)):
        assert f"{hosts} hosts" in Conf.template(template).plan(), template
    big = Conf.template("leaf-spine", name="big", leaves=4, hosts_per_leaf=2, spine_link={"rate": "100Gb/s"}, mtu=1024)
    assert big["spine_link"] == {"rate": "100Gb/s", "latency": "300ns"} and "mtu 1024" in big.plan()
    refused(ValueError, "expected one of leaf-spine, single-switch", lambda: Conf.template("torus"))
    refused(TribError, "lefes", lambda: Conf.template("leaf-spine", lefes=4).plan())


def runs():
    # The same rows as by hand, and the same from the file alone.
    args = ["trib", "sim", "leaf-spine-8", "all_reduce", "--algo", "ring,sharp", "-b", "4K", "-e", "64K", "--place", "out"]
    by_hand = scratch / "hand.json"
    subprocess.run([str(tributary._trib.trib()), *args[1:], "-J", by_hand], check=True, capture_output=True)
    file = scratch / "run.json"
    frame = tributary.run("leaf-spine-8", sizes=tributary.sizes("4K", "64K"), algos="ring,sharp", json=file)
    rows = json.loads(by_hand.read_text())["results"]
    assert len(frame) == len(rows) == 6 and list(frame["time_us"]) == [r["time_us"] for r in rows]
    assert list(frame["fidelity.ok"]) == [True] * 6 and frame["wrong"].sum() == 0 and set(frame["clock"]) == {"virtual"}
    assert frame.attrs["runs"][0]["run"]["files"][0]["path"].endswith("leaf-spine-8.conf")
    again = tributary.read(file)
    assert again.equals(frame) and again.attrs == frame.attrs
    assert len(tributary.read([file, by_hand])) == 12 and list(tributary.read([file, by_hand])["run"].unique()) == [0, 1]
    # Columns are those of --csv, and those before them.
    csv = scratch / "rows.csv"
    subprocess.run([str(tributary._trib.trib()), *args[1:], "--csv", csv], check=True, capture_output=True)
    assert set(csv.read_text().splitlines()[0].split(",")) <= set(frame.columns)

    # Sizes in no series, a conf and a plan as objects, links, seeds.
    loss = [{"link": "all", "loss": 0.01}]
    c = Conf.template("single-switch", name="four")
    lossy = tributary.run(
        c, "all_gather", sizes=[4096, "8K", "100000"], algos=["ring"], types=["float", "half"], faults=loss, seed=7, payload="none", counters=True, ranks=3
    )
    assert sorted(lossy["size_bytes"]) == [4092, 4092, 8184, 8190, 99996, 99996]
    assert set(lossy["conf"]) == {"four"} and set(lossy["seed"]) == {7} and set(lossy["faults"]) == {"faults"} and set(lossy["ranks"]) == {3}
    assert lossy["wrong"].isna().all() and len(lossy.attrs["runs"]) == 2
    links = tributary.links(lossy)
    assert len(links) == 6 * 6 and {"h0:0", "switch0:0"} <= set(links["from"]) and links["utilisation"].max() <= 1
    assert links["drops.lost"].sum() > 0, "a lossy link loses"
    refused(ValueError, "expected rows measured with counters=True", lambda: tributary.links(frame))

    # Mistakes, in trib's words.
    e = refused(TribError, '--algo: found "rong", expected all or a list of', lambda: tributary.run("two-hosts", algos="rong"))
    assert e.code == 2 and e.command[1:3] == ["sim", "two-hosts"] and e.rows is None
    refused(TribError, "mtux", lambda: tributary.run(c.copy(mtux=4)))
    refused(FileNotFoundError, "found no conf file 'nowhere'", lambda: tributary.run("nowhere"))
    refused(TribError, "found no fault plan 'nowhere'", lambda: tributary.run("two-hosts", faults="nowhere"))
    refused(ValueError, 'found the size \'4Q\', expected bytes such as 4096, "4K"', lambda: tributary.run("two-hosts", sizes="4Q"))
    refused(ValueError, 'seed=3 with clock="real"', lambda: tributary.run("two-hosts", clock="real", seed=3))
    refused(ValueError, "clock='wall'", lambda: tributary.run("two-hosts", clock="wall"))
    died = [{"at": "1us", "host": "h1", "die": True, "told": "1us"}]
    e = refused(TribError, "h1", lambda: tributary.run("two-hosts", sizes=["4K", "8K"], algos="ring", faults=died))
    assert e.code == 1, e.code
    # Files that are none.
    (scratch / "half.json").write_text('{"results": [')
    (scratch / "step.json").write_text('{"workload": "x", "hosts": {}}')
    (scratch / "new.json").write_text('{"schema": 99, "results": []}')
    refused(ValueError, "half.json: found no JSON", lambda: tributary.read(scratch / "half.json"))
    refused(ValueError, "step.json: found no rows", lambda: tributary.read(scratch / "step.json"))
    refused(ValueError, "new.json: found schema 99, expected 1", lambda: tributary.read(scratch / "new.json"))
    refused(OSError, "nothing.json", lambda: tributary.read(scratch / "nothing.json"))


warnings.simplefilter("error")
round_trips()
conf_objects()
runs()
print("all right")
