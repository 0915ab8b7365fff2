# SPDX-License-Identifier: BSD-3-Clause
"""trib-import: options, and what is done with each kind of file."""

from __future__ import annotations

import getopt
import os
import re
import sys
from typing import Mapping, Optional, Sequence

from .._cli import HELP, Command, Option, clean
from .._files import write_whole
from . import gpus, ibnetdiscover, iblinkinfo, verdict
from .source import Line, Names, Notes, text_of
from .topology import Machine

COMMAND = Command(
    "trib-import",
    "write the conf of a fabric that exists",
    "FILE... [OPTION...]",
    """\
Writes the conf of a fabric that exists. FILE is what ibnetdiscover or iblinkinfo prints of an InfiniBand fabric,
or NCCL's or RCCL's topology of a node (NCCL_TOPO_DUMP_FILE); several topologies are several nodes. Rates, ports and
names are those of the file; latencies and aggregation are assumed, and say so. What a conf cannot have (routers,
aggregation nodes, links between switches of one level) is left out and told by its line. What trib plan would
refuse is refused, with the line of FILE that is why.""",
    (
        Option("output", "o", "FILE", "", "write the conf there instead of standard output"),
        Option("name", "", "NAME", "", "the fabric's name; by default the file's"),
        Option("latency", "", "TIME", "", "of each link, which no file says (300ns)"),
        Option("nodes", "", "N", "", "with one topology of a node: so many such nodes, joined by their NICs at a leaf (1)"),
        Option("without", "", "HOST,...", "", "leave these hosts of an InfiniBand fabric out, by their names without the HCA's"),
        *HELP,
    ),
    (("0", "the conf is written"), ("1", "a file cannot be read, is neither, or is of no fabric that a conf can have; the reason is on stderr"), ("2", "the command line is wrong")),
    "trib(1), trib-plan(1), trib-sim(1)",
)


def _check_options(given: Mapping[str, str]) -> None:
    """GetoptError: a value that a conf would not take."""
    for key, like, expected in (
        ("name", r"[A-Za-z][\w.-]{0,30}", "a letter and at most 30 letters, digits, dots, dashes"),
        ("latency", r"\d+(\.\d+)?(ps|ns|us|ms)", "a time as 300ns"),
        ("nodes", r"[1-9]\d{0,3}", "1 to 9999"),
    ):
        if key in given and not re.fullmatch(like, given[key]):
            raise getopt.GetoptError(f"--{key}: found '{clean(given[key])}', expected {expected}")


def _infiniband(path: str, text: str, without: Sequence[str], notes: Notes) -> tuple[list[Line], Mapping[str, str], verdict.Explain]:
    net = (iblinkinfo if iblinkinfo.is_iblinkinfo(text) else ibnetdiscover).read(path, text, notes)
    hosts = {n.machine()[0] for n in net.nodes.values() if n.kind == "Ca"}
    for name in without:
        if name not in hosts:
            raise getopt.GetoptError(f"--without: found '{clean(name)}', expected a host of {path}")
    net.reduce(without, notes)
    net.name(notes)
    return net.conf(), net.lines_of_names(), verdict.between_hosts(net)


def conf_of(files: Sequence[str], given: Mapping[str, str], notes: Notes) -> str:
    """The text of the conf, which ``trib plan`` takes. Refused, GetoptError: there is none."""
    latency = given.get("latency", "300ns")
    texts = [(f, text_of(f)) for f in files]
    is_xml = [t.lstrip().startswith("<") for _, t in texts]
    if any(is_xml) != all(is_xml) or (not any(is_xml) and len(files) > 1):
        raise getopt.GetoptError(f"found {len(files)} files, expected one of ibnetdiscover, or topologies of NCCL alone")
    if "nodes" in given and (len(files) > 1 or not is_xml[0]):
        raise getopt.GetoptError("found --nodes, expected it with one topology of NCCL")
    if "without" in given and is_xml[0]:
        raise getopt.GetoptError("found --without, expected it with ibnetdiscover's or iblinkinfo's output")
    name = given.get("name") or Names().make(os.path.splitext(os.path.basename(files[0]))[0], "fabric")
    what = "NCCL's topology" if is_xml[0] else ("iblinkinfo" if iblinkinfo.is_iblinkinfo(texts[0][1]) else "ibnetdiscover") + "'s output"
    of = ", ".join(re.sub(r"[^\x20-\x7e]", "?", os.path.basename(f)) for f in files)
    head = [
        f"# {what} of {of}. Latencies, MTU and aggregation are not in it: they are assumed.",
        f'name = "{name}";', 'dilation = "auto";', "mtu = 4096;", 'ecmp = "balanced";', "reduce = { groups = 64; slots = 16384; window = 256; };",
    ]  # fmt: skip
    if is_xml[0]:
        machines = [Machine(f, t, notes) for f, t in texts] * int(given.get("nodes", "1"))
        body, where = gpus.conf(machines, latency, notes)
        explain: verdict.Explain = lambda a, b: gpus.unlinked(machines[0], a, b)  # noqa: E731
        names: Mapping[str, str] = where
    else:
        head.append(f'link_defaults = {{ latency = "{latency}"; }};')
        without = [h for h in given.get("without", "").split(",") if h]
        body, names, explain = _infiniband(*texts[0], without, notes)
    lines = [*(Line(h) for h in head), *body]
    verdict.check(lines, name, names, files[0], explain)
    return "\n".join(line.text for line in lines) + "\n"


def work(given: Mapping[str, str], files: Sequence[str]) -> None:
    if not files:
        raise getopt.GetoptError("found no FILE, expected what ibnetdiscover or NCCL writes (-h shows all)")
    _check_options(given)
    notes = Notes()
    try:
        conf = conf_of(files, given, notes)
    finally:
        for line in notes.lines():
            COMMAND.say(line)
    if "output" in given:
        write_whole(given["output"], conf)
    else:
        sys.stdout.write(conf)


def main(argv: Optional[Sequence[str]] = None) -> int:
    return COMMAND.run(sys.argv[1:] if argv is None else argv, work)
