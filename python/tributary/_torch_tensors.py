# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as the library takes them: flat, contiguous, of a type it knows; and back."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Union

import torch

from . import coll

Movable = Union[torch.Tensor, list[torch.Tensor]]  # a block for each rank, in one tensor or in a list

_REDUCED = {
    getattr(torch, name): number for name, (number, _) in coll.TYPES.items() if hasattr(torch, name)
}
_OPS = {
    "SUM": "sum",
    "AVG": "avg",
    "PRODUCT": "prod",
    "MIN": "min",
    "MAX": "max",
    "BAND": "band",
    "BOR": "bor",
    "BXOR": "bxor",
}
# Truth is 0 or 1 in a byte.
_OF_BOOL = {"SUM": "max", "MAX": "max", "BOR": "bor", "PRODUCT": "min", "MIN": "min", "BAND": "band", "BXOR": "bxor"}


def check(name: str, tensors: Sequence[torch.Tensor], count: int = 0) -> None:
    """Refuses by name what no operation takes."""
    if count and len(tensors) != count:
        raise RuntimeError(f"{name}: found {len(tensors)} tensors, expected {count}: one a process")
    if not tensors:
        raise RuntimeError(f"{name}: found no tensor")
    for t in tensors:
        if t.device.type != "cpu":
            raise RuntimeError(f"{name}: found a tensor on {t.device}, expected one on the CPU")
        if t.layout != torch.strided:
            raise RuntimeError(f"{name}: found a tensor of layout {t.layout}, expected a dense one")
        if t.dtype != tensors[0].dtype:
            raise RuntimeError(
                f"{name}: found tensors of {tensors[0].dtype} and {t.dtype}, expected one type"
            )


def overlap(outputs: Sequence[torch.Tensor]) -> str:
    """Why an output cannot be written; "": it can. Its elements must each have a place of their own."""
    for t in outputs:
        if _overlaps(t):
            return (
                f"found an output whose elements overlap in memory, of size {list(t.shape)} and stride "
                f"{list(t.stride())}, expected a place for each (clone() makes one)"
            )
    return ""


def _overlaps(t: torch.Tensor) -> bool:
    dims = sorted((stride, size) for stride, size in zip(t.stride(), t.shape) if size > 1)
    if t.numel() < 2 or t.is_contiguous():
        return False
    reach = 0  # of the dimensions so far
    for stride, size in dims:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    at = torch.zeros(1, dtype=torch.int64)
    for stride, size in dims:
        at = (at[:, None] + torch.arange(size) * stride).reshape(-1)
    return int(at.unique().numel()) < int(t.numel())


def op_name(op: Any) -> str:
    """Of dist.ReduceOp, as object or as value."""
    inner = getattr(op, "op", op)
    return str(getattr(inner, "name", inner))


def reduction(name: str, tensors: Sequence[torch.Tensor], op: Any) -> tuple[int, int]:
    """The library's numbers of type and reduction."""
    dtype, asked = tensors[0].dtype, op_name(op)
    ops = _OF_BOOL if dtype == torch.bool else _OPS
    if asked not in ops:
        raise RuntimeError(
            f"{name}: found {asked} of {dtype}, expected one of {', '.join(ops)}"
        )
    if dtype == torch.bool:
        return coll.TYPES["uint8"][0], coll.OPS[ops[asked]]
    if dtype not in _REDUCED:
        known = ", ".join(str(t)[6:] for t in [*_REDUCED, torch.bool])
        raise RuntimeError(f"{name}: found {dtype}, expected one of {known}")
    if asked in ("BAND", "BOR", "BXOR") and dtype.is_floating_point:
        raise RuntimeError(f"{name}: found {asked} of {dtype}, expected integers or bool")
    return _REDUCED[dtype], coll.OPS[ops[asked]]


class Flat:
    """Tensors of one type, one behind the other in contiguous memory: theirs, where that is possible."""

    def __init__(self, tensors: Sequence[torch.Tensor], data: torch.Tensor, own: bool) -> None:
        self._tensors, self.data, self._own = tensors, data, own
        self.numel = data.numel()
        self.bytes = self.numel * data.element_size()

    @classmethod
    def of(cls, tensors: Sequence[torch.Tensor], read: bool = True) -> "Flat":
        """read: what is in them counts."""
        tensors = [t.detach() for t in tensors]
        if len(tensors) == 1 and tensors[0].is_contiguous():
            return cls(tensors, tensors[0].view(-1), False)
        n = sum(t.numel() for t in tensors)
        data = torch.empty(n, dtype=tensors[0].dtype)
        flat = cls(tensors, data, True)
        if read:
            for t, part in flat._parts():
                part.copy_(t)
        return flat

    def back(self) -> None:
        """Results to the tensors."""
        if self._own:
            for t, part in self._parts():
                t.copy_(part)

    def _parts(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        sizes = [t.numel() for t in self._tensors]
        return [(t, p.view(t.shape)) for t, p in zip(self._tensors, self.data.split_with_sizes(sizes))]


def _block(name: str, what: Movable, like: torch.Tensor, r: int, ranks: int) -> torch.Tensor:
    """Rank r's part of what, in the shape that it has."""
    if isinstance(what, list):
        if len(what) != ranks:
            raise RuntimeError(f"{name}: found a list of {len(what)} tensors, expected {ranks}")
        if what[r].numel() != like.numel():
            raise RuntimeError(
                f"{name}: found blocks of {like.numel()} and {what[r].numel()} elements, expected "
                "equal ones"
            )
        return what[r].detach()
    if what.numel() != like.numel() * ranks:
        raise RuntimeError(
            f"{name}: found {what.numel()} elements in all and {like.numel()} of a rank, expected "
            f"{ranks} times as many in all"
        )
    return what.detach().view(ranks, -1)[r] if like.numel() else what.detach().view(-1)


def _one_tensor(what: Sequence[Movable]) -> Optional[torch.Tensor]:
    if len(what) == 1 and not isinstance(what[0], list) and what[0].is_contiguous():
        return what[0].detach().view(-1)
    return None


def scattered(
    name: str, what: list[Movable], like: Sequence[torch.Tensor], ranks: int
) -> torch.Tensor:
    """A flat vector with a block for each rank, from what: for each of like the blocks of all ranks."""
    dense = [w if isinstance(w, list) else w.detach().contiguous() for w in what]
    blocks = _blocks(name, dense, like, ranks)
    whole = _one_tensor(dense)
    if whole is not None:
        return whole
    return torch.cat([b.reshape(-1) for of_rank in blocks for b in of_rank])


def gathered(
    name: str, what: Sequence[Movable], like: Sequence[torch.Tensor], ranks: int
) -> tuple[torch.Tensor, Optional[Callable[[], None]]]:
    """Where a block of each rank goes, and what brings the blocks from there to what."""
    whole = _one_tensor(what)
    if whole is not None:
        _blocks(name, what, like, ranks)
        return whole, None
    dense = [
        w if isinstance(w, list) or w.is_contiguous() else torch.empty(w.shape, dtype=w.dtype)
        for w in what
    ]
    blocks = [b for of_rank in _blocks(name, dense, like, ranks) for b in of_rank]
    data = torch.empty(sum(b.numel() for b in blocks), dtype=like[0].dtype)

    def back() -> None:
        for b, part in zip(blocks, data.split_with_sizes([b.numel() for b in blocks])):
            b.copy_(part.view(b.shape))
        for w, d in zip(what, dense):
            if w is not d and isinstance(w, torch.Tensor) and isinstance(d, torch.Tensor):
                w.detach().copy_(d)

    return data, back


def _blocks(
    name: str, what: Sequence[Movable], like: Sequence[torch.Tensor], ranks: int
) -> list[list[torch.Tensor]]:
    """For each rank its parts of all of what."""
    if len(what) != len(like):
        raise RuntimeError(f"{name}: found {len(what)} and {len(like)} tensors, expected as many")
    return [[_block(name, w, t, r, ranks) for w, t in zip(what, like)] for r in range(ranks)]
