# SPDX-License-Identifier: BSD-3-Clause
"""The backend "trib" of torch.distributed: collectives of CPU tensors on a Tributary fabric.

    import torch.distributed as dist
    import tributary.torch

    dist.init_process_group("trib")       # env://, tcp:// and file:// as for any backend
    model = torch.nn.parallel.DistributedDataParallel(model)

Every process runs as a host of the fabric, by ``trib exec CONF HOST -- python3 PROGRAM``. The algorithms are
those of ``trib perf --policy``: ``pg_options=tributary.torch.Options(algo="ring")``, else the environment
variable TRIB_ALGO, else "sharp,ring"; "auto" takes the fastest by the model for each size.

Each group has a communicator of its own, which is created with its first operation, and a thread that drives it.
Results have the same bits in every run and at every rank. When a rank dies, operations of all others fail with
its name: RuntimeError from wait(), from backward(), and from every later call. What is wrong with the tensors of one
call at one rank ends that call, with the reason, at every rank whose result depends on it, and nothing else.

Callbacks of futures may call collectives and wait for them; they run one after the other, in the order of then().

PyTorch 1.13 and 2.x. Reductions of half, bfloat16, float, double, integers of 8, 32 and 64 bits and bool by SUM,
AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR; every type is moved.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from datetime import timedelta
from typing import Any, Optional, Sequence

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store

from . import _lib, coll
from ._torch_callbacks import level
from ._torch_engine import Engine, Job
from ._torch_store import StoreOob
from ._torch_tensors import Flat, Movable, check, gathered, overlap, reduction, scattered
from ._torch_work import Work


@dataclasses.dataclass
class Options:
    """pg_options of init_process_group() and new_group(). algo: algorithms, as for `trib perf --policy`, or
    "auto"; None: TRIB_ALGO, else "sharp,ring". window: slots to ask of aggregation nodes, 0: their choice."""

    algo: Optional[str] = None
    window: int = 0


_Base: Any = dist.ProcessGroup  # whose calls have other types in each release


class ProcessGroupTrib(_Base):  # type: ignore[misc]
    """A group of the backend "trib". Calls as torch.distributed and DDP's C++ make them."""

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta,
        options: Optional[Options] = None,
        name: str = "",
    ) -> None:
        super().__init__(rank, size)
        options = options or Options()
        if not isinstance(options, Options):
            raise TypeError(f"pg_options: found {options!r}, expected tributary.torch.Options")
        _lib.load()
        if not os.environ.get("TRIB_RUN") or not os.environ.get("TRIB_HOST"):
            raise RuntimeError(
                "found no TRIB_RUN and TRIB_HOST, expected a program that is run by "
                "trib exec CONF HOST -- PROGRAM"
            )
        self._rank, self._size = rank, size
        self._names = {"name": name, "desc": "trib"}
        self._timeout_s = timeout.total_seconds()
        algo = options.algo or os.environ.get("TRIB_ALGO") or "sharp,ring"
        self._store = store
        self._create = lambda oob: coll.Communicator(oob, algo, options.window)
        self._engines: dict[int, Engine] = {}  # of the program, of callbacks, of their callbacks, ...
        self._engines_lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _close, self._engines)

    # ---- what torch asks ----

    def getBackendName(self) -> str:
        return "trib"

    def name(self) -> str:
        return "trib"

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    getRank, getSize = rank, size

    # 2.x keeps names at its own backends, of which this group has none.
    def _set_group_name(self, name: str) -> None:
        self._names["name"] = name

    def _set_group_desc(self, desc: str) -> None:
        self._names["desc"] = desc

    def getGroupName(self) -> str:
        return self._names["name"]

    def getGroupDesc(self) -> str:
        return self._names["desc"]

    group_name, group_desc = property(getGroupName), property(getGroupDesc)
    setGroupName, setGroupDesc = _set_group_name, _set_group_desc

    def shutdown(self) -> None:
        self._finalizer()

    def abort(self) -> None:
        self._finalizer()

    def _set_sequence_number_for_group(self) -> None:
        pass

    # ---- reductions ----

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        return self._all_reduce("all_reduce", tensors, _op(opts))

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Work:
        return self._all_reduce("all_reduce", tensors, _op(opts))

    def _all_reduce(self, name: str, tensors: Sequence[torch.Tensor], op: Any) -> Work:
        check(name, tensors)
        kind, number = reduction(name, tensors, op)
        flat = Flat.of(tensors)
        job = Job(name, self._work(name, list(tensors)), flat.numel, kind, number)
        job.send = job.recv = flat.data
        job.finish = flat.back
        return self._submit(job, tensors)

    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Work:
        check("reduce", tensors, 1)
        kind, number = reduction("reduce", tensors, opts.reduceOp)
        flat = Flat.of(tensors)
        job = Job("reduce", self._work("reduce", list(tensors)), flat.numel, kind, number)
        job.root, job.send = opts.rootRank, flat.data
        if self._rank != opts.rootRank:
            return self._submit(job)
        job.recv, job.finish = flat.data, flat.back
        return self._submit(job, tensors)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        check("reduce_scatter", outputs, 1)
        return self._scatter_reduced(outputs, [list(inputs[0])], opts)

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        return self._scatter_reduced(outputs, list(inputs), opts)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _scatter_reduced(
        self, outputs: Sequence[torch.Tensor], inputs: list[Movable], opts: Any
    ) -> Work:
        check("reduce_scatter", [*outputs, *_all(inputs)])
        kind, number = reduction("reduce_scatter", outputs, _op(opts))
        flat = Flat.of(outputs, read=False)
        send = scattered("reduce_scatter", inputs, outputs, self._size)
        job = Job(
            "reduce_scatter", self._work("reduce_scatter", list(outputs)), flat.numel, kind, number
        )
        job.send, job.recv, job.finish = send, flat.data, flat.back
        return self._submit(job, outputs)

    # ---- movements: any type, as bytes ----

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Work:
        check("broadcast", tensors, 1)
        flat = Flat.of(tensors)
        job = self._moved("broadcast", list(tensors), flat.bytes)
        job.root, job.send = opts.rootRank, flat.data
        if self._rank == opts.rootRank:
            return self._submit(job)
        job.finish = flat.back
        return self._submit(job, tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        check("all_gather", inputs, 1)
        return self._gather_all([list(outputs[0])], inputs)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        # outputs: for each rank a list of tensors
        return self._gather_all([list(of) for of in zip(*outputs)], inputs)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        return self._gather_all([output], [input])

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        return self._gather_all(list(outputs), inputs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def _gather_all(self, outputs: list[Movable], inputs: Sequence[torch.Tensor]) -> Work:
        check("all_gather", [*inputs, *_all(outputs)])
        flat = Flat.of(inputs)
        recv, finish = gathered("all_gather", outputs, inputs, self._size)
        job = self._moved("all_gather", _all(outputs), flat.bytes)
        job.send, job.recv, job.finish = flat.data, recv, finish
        return self._submit(job, _all(outputs))

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        check("gather", inputs, 1)
        flat, outs = Flat.of(inputs), [list(outputs[0])] if outputs else []
        job = self._moved("gather", _all(outs), flat.bytes)
        job.root, job.send = opts.rootRank, flat.data
        if self._rank == opts.rootRank:
            check("gather", _all(outs))
            job.recv, job.finish = gathered("gather", outs, inputs, self._size)
        return self._submit(job, _all(outs))

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        check("scatter", outputs, 1)
        flat = Flat.of(outputs, read=False)
        job = self._moved("scatter", list(outputs), flat.bytes)
        job.root, job.recv, job.finish = opts.rootRank, flat.data, flat.back
        if self._rank == opts.rootRank:
            check("scatter", inputs[0])
            job.send = scattered("scatter", [list(inputs[0])], outputs, self._size)
        return self._submit(job, outputs)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        check("all_to_all", [*outputs, *inputs])
        return self._exchange([list(outputs)], [list(inputs)])

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
        opts: Any = None,
    ) -> Work:
        check("all_to_all", [output, input])
        for splits in (output_split_sizes, input_split_sizes):
            if len(set(splits)) > 1:
                raise RuntimeError(f"all_to_all: found blocks of {list(splits)}, expected equal ones")
        return self._exchange([output], [input])

    all_to_all_single = alltoall_base

    def _exchange(self, outputs: list[Movable], inputs: list[Movable]) -> Work:
        first = inputs[0]
        if isinstance(first, list):
            one = first[:1]
        else:
            one = [first.reshape(-1)[: first.numel() // self._size]]
        send = scattered("all_to_all", inputs, one, self._size)
        recv, finish = gathered("all_to_all", outputs, one, self._size)
        if send.data_ptr() == recv.data_ptr():
            send = send.clone()
        job = self._moved(
            "all_to_all", _all(outputs), send.numel() * send.element_size() // self._size
        )
        job.send, job.recv, job.finish = send, recv, finish
        return self._submit(job, _all(outputs))

    def barrier(self, opts: Any = None) -> Work:
        return self._submit(Job("barrier", self._work("barrier", [])))

    # ---- what there is not ----

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Work:
        raise _no("send")

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Work:
        raise _no("recv")

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        raise _no("recv from any rank")

    # ---- the same for all ----

    def _engine(self) -> Engine:
        """For calls of this thread."""
        at = level()
        with self._engines_lock:
            if at not in self._engines:
                what = f"/{at}" if at else ""
                self._engines[at] = Engine(
                    f"group {self._names['name'] or 'of trib'}",
                    StoreOob(self._store, self._rank, self._size, self._timeout_s, what),
                    self._create,
                    self._timeout_s,
                    at,
                )
            return self._engines[at]

    def _work(self, name: str, result: list[torch.Tensor]) -> Work:
        engine = self._engine()
        return Work(name, result, self._timeout_s, engine.level, engine.completer)

    def _moved(self, kind: str, result: list[torch.Tensor], size: int) -> Job:
        return Job(kind, self._work(kind, result), size, coll.TYPES["uint8"][0])

    def _submit(self, job: Job, written: Sequence[torch.Tensor] = ()) -> Work:
        """written: by this rank's part of the call."""
        job.refused = overlap(written)
        self._engine().submit(job)
        if job.refused:
            job.work.forget()
            raise RuntimeError(f"{job.work.name}: {job.refused}")
        return job.work


def _close(engines: dict[int, Engine]) -> None:
    for at in sorted(engines):
        engines[at].close()


def _no(what: str) -> RuntimeError:
    return RuntimeError(f"the backend trib has no {what}: found that call, expected a collective")


def _op(opts: Any) -> Any:
    return dist.ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts)


def _all(lists: Sequence[Movable]) -> list[torch.Tensor]:
    return [t for x in lists for t in (x if isinstance(x, list) else [x])]


def _create(options: Any, pg_options: Optional[Options] = None) -> ProcessGroupTrib:
    return ProcessGroupTrib(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        pg_options,
        options.group_id,
    )


def _register() -> None:
    if hasattr(dist.Backend, "TRIB"):
        return
    try:
        dist.Backend.register_backend("trib", _create, extended_api=True, devices=["cpu"])
    except TypeError:  # 1.13
        dist.Backend.register_backend("trib", _create, extended_api=True)


_register()
