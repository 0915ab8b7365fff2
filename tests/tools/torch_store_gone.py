#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The store of tributary.torch goes with rank 0 while another rank's operations still run: they end as the communicator says."""
import threading

import torch

from tributary import _torch_engine as engines
from tributary import _torch_work as work


class Request:
    """Runs for two looks, then fails with `why`, or goes well."""

    algo = "ring"

    def __init__(self, why):
        self._why, self._looks = why, 0

    def wait(self, seconds):
        self._looks += 1
        if self._looks < 3:
            raise TimeoutError
        if self._why:
            raise RuntimeError(self._why)


class Communicator:
    rank, size, fell_back, error = 1, 2, "", ""

    def __init__(self, why):
        self._why = why

    def start(self, *_):
        return Request(self._why)

    def trees(self):
        return 1, ""

    def progress(self):
        pass

    def close(self):
        pass


class Oob:
    """Ranks have met; then the store is gone."""

    rank, size, hurry = 1, 2, False

    def meet(self, timeout_s=None):
        pass

    def hear(self):
        raise RuntimeError("Broken pipe")


def run(why):
    threading.excepthook = lambda args: print("a thread has died:", args.exc_value)
    engine = engines.Engine("pg", Oob(), lambda oob: Communicator(why), 5.0, 0)
    tensor = torch.zeros(4)
    w = work.Work("all_reduce", [tensor], 5.0, 0, engine.completer)
    engine.submit(engines.Job("all_reduce", w, 4, send=tensor, recv=tensor))
    try:
        w.wait()
        return "well"
    except RuntimeError as e:
        return str(e)
    finally:
        engine.close()


print("fails:", run("all_reduce: rank 2 (h2): its process has ended"))
print("goes well:", run(""))
