# SPDX-License-Identifier: BSD-3-Clause
"""A mutant: a file with one small change."""


class Mutant:
    """FILE with TEXT[start:end] replaced by INSTEAD. No line moves, so that numbers of lines in assertions stay."""

    def __init__(self, file, text, kind, start, end, instead):
        self.file, self.text, self.kind, self.start, self.end = file, text, kind, start, end
        self.instead = instead + "\n" * (text.count("\n", start, end) - instead.count("\n"))
        self.line = text.count("\n", 0, start) + 1

    def source(self):
        return self.text[: self.start] + self.instead + self.text[self.end :]

    def _lines(self, instead):
        begin = self.text.rfind("\n", 0, self.start) + 1
        stop = self.text.find("\n", self.end)
        return " ".join((self.text[begin : self.start] + instead + self.text[self.end : stop]).split())

    @property
    def was(self):
        return self._lines(self.text[self.start : self.end])

    @property
    def now(self):
        return self._lines(self.instead)

    @property
    def key(self):
        """What the list of equivalent mutants knows it by: no number of a line, which others' changes move."""
        return self.file, self.was, self.now
