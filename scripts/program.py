#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The programs that are Python: trib-NAME is this file by another name, and runs a command of the package python/tributary."""
import importlib
import os
import sys

COMMANDS = {
    "trib-calibrate": "calibrate.command",
    "trib-capture": "capture.command",
    "trib-explain": "explain.command",
    "trib-import": "importer.command",
    "trib-machines": "machines.command",
    "trib-nccl": "nccl.command",
    "trib-report": "report.command",
    "trib-sweep": "sweeps.command",
    # of a checkout alone
    "compare_protocols": "experiments.compare_protocols",
    "make_schedule": "experiments.make_schedule",
    "nccl_tuner.py": "validate.tuner",
    "plot_speedup": "experiments.plot_speedup",
    "validate": "validate.command",
}


def name_of(path: str) -> str:
    """The name of a command that the path leads to; of another path its own."""
    while os.path.basename(path) not in COMMANDS and os.path.islink(path):
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return os.path.basename(path)


def main() -> int:
    here = os.path.dirname(os.path.realpath(__file__))
    installed = os.path.join("lib", "python3", "dist-packages")
    for at in (os.path.join(here, "..", "python"), os.path.join(here, "..", installed), os.path.join(here, "..", "..", installed)):
        if os.path.isdir(os.path.join(at, "tributary")):
            sys.path.insert(0, os.path.realpath(at))
            break
    name = name_of(sys.argv[0])
    if name not in COMMANDS:
        print(f"{name}: found no command of this name, expected one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    return int(importlib.import_module(f"tributary.{COMMANDS[name]}").main())


if __name__ == "__main__":
    sys.exit(main())
