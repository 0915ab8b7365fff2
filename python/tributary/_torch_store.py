# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a group of tributary.torch find each other: by torch's store.

A store may hold what an earlier attempt has written: torchrun's elastic restart keeps the agent's, a file stays. So
a group meets first: each rank writes a number that it has drawn, rank 0 answers each such number with one that it
has drawn for all, and the keys of the group begin with that. Who answers and who confirms is alive.

The store is polled: a call that blocks there would keep every other thread of the process from it.
"""

from __future__ import annotations

import secrets
import time
from typing import Callable, Optional

from torch._C._distributed_c10d import Store

_POLL_S = (0.0005, 0.01)  # the first and the longest pause


class StoreOob:
    """Out-of-band calls of a group; what: apart from other communicators that the same ranks meet for."""

    def __init__(self, store: Store, rank: int, size: int, timeout_s: float, what: str = "") -> None:
        self.rank, self.size = rank, size
        self._store, self._timeout_s, self._calls = store, timeout_s, 0
        self._top = f"trib{what}"
        self._session = ""  # before the key of every call
        self._heard = 0  # notes
        self.hurry = False  # the group ends: nobody is waited for any more

    # ---- calls ----

    def meet(self, timeout_s: Optional[float] = None) -> None:
        """Before the first of the others; the same for a group that meets again."""
        usual, self._timeout_s = self._timeout_s, timeout_s or self._timeout_s
        self._calls = self._heard = 0
        try:
            self._meet(secrets.token_hex(8))
        finally:
            self._timeout_s = usual

    def _meet(self, mine: str) -> None:
        self._post(f"{self._top}/come/{self.rank}", mine)
        if self.rank == 0:
            self._receive()
        else:
            answer = f"{self._top}/answer/{mine}"
            self._until(lambda: self._there(answer), "rank 0")
            self._session = self._read(answer)
            self._put(f"{self._session}/come/{self.rank}", mine)

    def bcast(self, data: Optional[bytes], root: int) -> bytes:
        key = self._next()
        if data is not None:
            self._put(key, data.hex())  # 1.13 takes text only
        return self._take(key, root)

    def gather(self, data: bytes, root: int) -> Optional[list[bytes]]:
        key = self._next()
        self._put(f"{key}/{self.rank}", data.hex())
        if self.rank != root:
            return None
        return [self._take(f"{key}/{r}", r) for r in range(self.size)]

    def barrier(self) -> None:
        key = self._next()
        self._store.add(key, 1)
        self._until(lambda: self._store.add(key, 0) >= self.size, "all ranks")

    def greatest(self, number: int) -> int:
        """Of all ranks' numbers."""
        of_all = self.gather(number.to_bytes(8, "big"), 0)
        most = None if of_all is None else max(of_all)
        return int.from_bytes(self.bcast(most, 0), "big")

    # ---- notes to all ranks ----

    def tell(self, text: str) -> int:
        """A note; others hear of it when they ask. Its number."""
        return self._post(f"{self._session}/note", text)

    def hear(self) -> list[tuple[int, str]]:
        """Notes that this rank has not heard of yet, its own too, by their numbers."""
        notes = []
        for k in range(self._heard + 1, int(self._store.add(f"{self._session}/note", 0)) + 1):
            if not self._there(f"{self._session}/note/{k}"):
                break
            notes.append((k, self._read(f"{self._session}/note/{k}")))
            self._heard = k
        return notes

    def answer(self, note: int) -> None:
        self._store.add(f"{self._session}/answers/{note}", 1)

    def answers(self, note: int) -> int:
        return int(self._store.add(f"{self._session}/answers/{note}", 0))

    # ---- the store ----

    def _receive(self) -> None:
        """Rank 0: until every rank has confirmed. A number that nobody confirms was a dead process's."""
        self._session = f"{self._top}/{secrets.token_hex(8)}"
        seen, missing = [0] * self.size, set(range(1, self.size))

        def look() -> bool:
            for r in sorted(missing):
                come = f"{self._top}/come/{r}"
                n = int(self._store.add(come, 0))
                if n > seen[r] and self._there(f"{come}/{n}"):
                    self._put(f"{self._top}/answer/{self._read(f'{come}/{n}')}", self._session)
                    seen[r] = n
                if self._there(f"{self._session}/come/{r}"):
                    missing.discard(r)
            return not missing

        self._until(look, lambda: ", ".join(f"rank {r}" for r in sorted(missing)[:8]))

    def _next(self) -> str:
        self._calls += 1
        return f"{self._session}/{self._calls}"

    def _post(self, key: str, text: str) -> int:
        """One more value of a key that has several: its number, from 1 on."""
        n = int(self._store.add(key, 1))
        self._put(f"{key}/{n}", text)
        return n

    def _put(self, key: str, text: str) -> None:
        self._store.set(key, text)
        self._store.add(f"{key}/there", 1)

    def _there(self, key: str) -> bool:
        return int(self._store.add(f"{key}/there", 0)) > 0

    def _read(self, key: str) -> str:
        text: str = self._store.get(key).decode()
        return text

    def _take(self, key: str, of: int) -> bytes:
        self._until(lambda: self._there(key), f"rank {of}")
        return bytes.fromhex(self._read(key))

    def _until(self, done: Callable[[], bool], whom: "str | Callable[[], str]") -> None:
        pause, end = _POLL_S[0], time.monotonic() + self._timeout_s
        while not done():
            if self.hurry or time.monotonic() > end:
                who = whom if isinstance(whom, str) else whom()
                raise TimeoutError(f"{who} did not come within {self._timeout_s:g} s")
            time.sleep(pause)
            pause = min(2 * pause, _POLL_S[1])
