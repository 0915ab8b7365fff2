# SPDX-License-Identifier: BSD-3-Clause
"""What a sweep has done and how long the rest takes, on standard error."""

from __future__ import annotations

import time
from typing import Optional, Sequence, TextIO

_EVERY_S = 10.0  # where it is no terminal


class Line:
    """A simulation of a sweep: its weight is what can be said of its time beforehand, ranks times bytes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.began_s, self.took_s, self.done = 0.0, 0.0, False
        words = text.split()
        value = {a: b for a, b in zip(words, words[1:]) if a in ("-g", "-b", "-e", "-f", "--algo", "--seed")}
        # Runs that differ by their seeds alone take about as long as each other.
        self.shape = text.replace(f"--seed {value.get('--seed', '')}", "")
        self.algo = value.get("--algo", "")
        # 64 KiB: what a row costs beside its bytes.
        self.weight = float(value.get("-g", 8)) * (float(value.get("-e", 1 << 24)) * 4 / 3 + (1 << 16))

    def started(self) -> None:
        self.began_s = time.monotonic()

    def ended(self) -> None:
        self.took_s, self.done = time.monotonic() - self.began_s, True


def seconds(lines: Sequence[Line]) -> Optional[float]:
    """Seconds of core that the lines which are not done still take, by those that are; None: none is done."""
    ended = [line for line in lines if line.done]
    if not ended:
        return None
    shapes: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {"": [sum(e.took_s for e in ended), sum(e.weight for e in ended)]}
    for e in ended:
        shapes.setdefault(e.shape, []).append(e.took_s)
        rate = rates.setdefault(e.algo, [0.0, 0.0])
        rate[0], rate[1] = rate[0] + e.took_s, rate[1] + e.weight
    left, now = 0.0, time.monotonic()
    for line in lines:
        if line.done:
            continue
        took, weight = rates.get(line.algo, rates[""])
        same = shapes.get(line.shape)
        whole = sum(same) / len(same) if same else line.weight * took / weight
        left += max(0.0, whole - (now - line.began_s if line.began_s else 0.0))
    return left


def duration(s: float) -> str:
    """90 as "1 min 30 s"."""
    minutes, rest = divmod(int(s + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Progress:
    """Lines of progress: one that is overwritten on a terminal, else one every ten seconds and at the end."""

    def __init__(self, lines: Sequence[Line], found: int, workers: int, to: Optional[TextIO]) -> None:
        self.lines, self.found, self.workers, self.to = lines, found, workers, to
        self.began = time.monotonic()
        self.shown, self.next, self.failed = "", self.began + (0.0 if self.terminal else _EVERY_S), 0

    @property
    def terminal(self) -> bool:
        return self.to is not None and self.to.isatty()

    def text(self) -> str:
        done = sum(line.done for line in self.lines)
        elapsed = time.monotonic() - self.began
        left = seconds(self.lines)
        text = f"sweep: {self.found + done} of {self.found + len(self.lines)} simulations"
        text += f" ({self.found} from before)" if self.found else ""
        text += f", {duration(elapsed)}"
        if done < len(self.lines) and left is not None:
            text += f", {duration(left / min(self.workers, len(self.lines) - done))} left"
        return text + (f", {self.failed} failed" if self.failed else "")

    def show(self) -> None:
        if self.to is None or time.monotonic() < self.next:
            return
        self.next = time.monotonic() + (0.5 if self.terminal else _EVERY_S)
        self._print(self.text())

    def say(self, text: str) -> None:
        """A line that stays: of a simulation that failed."""
        self.failed += 1
        if self.to is not None:
            self._clear()
            print(f"sweep: {text}", file=self.to, flush=True)

    def end(self) -> None:
        if self.to is not None:
            self._print(self.text())
            if self.terminal:
                print(file=self.to, flush=True)

    def _clear(self) -> None:
        if self.terminal and self.shown and self.to is not None:
            print("\r" + " " * len(self.shown) + "\r", end="", file=self.to)

    def _print(self, text: str) -> None:
        if text == self.shown or self.to is None:
            return
        self._clear()
        print(text, end="" if self.terminal else "\n", file=self.to, flush=True)
        self.shown = text
