# SPDX-License-Identifier: BSD-3-Clause
"""A conf as text: where each value is, so that one can be changed and all else stays."""

from __future__ import annotations

import re
from typing import Optional


class Conf:
    """libconfig's text: where each setting's value is. What trib plan accepts is well formed."""

    TOKEN = re.compile(
        r'\s+|(?P<comment>#[^\n]*|//[^\n]*|/\*.*?\*/)|(?P<string>"(?:[^"\\]|\\.)*")'
        r'|(?P<mark>[={}()\[\]:;,])|(?P<word>[^\s={}()\[\]:;,"#]+)',
        re.S,
    )

    def __init__(self, text: str) -> None:
        self.text = text
        self.at: dict[str, tuple[int, int]] = {}  # path -> (begin, end) of a value
        self.body: dict[str, tuple[int, int]] = {}  # of what is within a group's braces
        self.comments: list[tuple[int, int]] = []
        self.tokens: list[tuple[str, str, int, int]] = []
        pos = 0
        while pos < len(text):
            m = self.TOKEN.match(text, pos)
            if not m:
                break
            if m["comment"]:
                self.comments.append(m.span())
            elif m[0].strip():
                self.tokens.append((m.lastgroup or "", m[0], m.start(), m.end()))
            pos = m.end()
        self.i = 0
        self.group("")

    def group(self, prefix: str) -> None:
        while self.i < len(self.tokens) and self.tokens[self.i][1] != "}":
            kind, word = self.tokens[self.i][:2]
            self.i += 1
            if kind == "word" and self.i < len(self.tokens) and self.tokens[self.i][1] in "=:":
                self.i += 1
                self.value(prefix + word)

    def value(self, path: str) -> None:
        if self.i >= len(self.tokens):
            return
        begin, word = self.tokens[self.i][2], self.tokens[self.i][1]
        if word == "{":
            self.i += 1
            self.group(path + ".")
            if self.i < len(self.tokens):
                self.body[path] = (begin + 1, self.tokens[self.i][2])
        elif word in "([":
            depth = 0
            while self.i < len(self.tokens):
                depth += (self.tokens[self.i][1] in "([{") - (self.tokens[self.i][1] in ")]}")
                if depth == 0:
                    break
                self.i += 1
        else:
            while self.i + 1 < len(self.tokens) and self.tokens[self.i][0] == self.tokens[self.i + 1][0] == "string":
                self.i += 1
        end = self.tokens[min(self.i, len(self.tokens) - 1)][3]
        self.i += 1
        self.at[path] = (begin, end)

    def get(self, path: str) -> Optional[str]:
        """A scalar's text without quotes, or None."""
        return self.text[slice(*self.at[path])].strip('"') if path in self.at and path not in self.body else None

    def group_text(self, path: str) -> Optional[str]:
        return self.text[slice(*self.body[path])].rstrip() if path in self.body else None

    def set(self, path: str, value: str, comment: Optional[str]) -> Conf:
        """The conf with the value, and a comment on the line above it."""
        if path in self.at:
            begin, end = self.at[path]
            return Conf(self.text[:begin] + value + self.text[end:]).remark(path, comment)
        parent, _, name = path.rpartition(".")
        setting = "%s = %s;" % (name, value)
        if not parent:
            return Conf(self.text.rstrip("\n") + "\n\n" + setting + "\n").remark(path, comment)
        if parent not in self.body:
            return self.set(parent, "{ %s }" % setting, None).remark(path, comment)
        begin, end = self.body[parent]
        last = max([t[3] for t in self.tokens if begin <= t[2] and t[3] <= end], default=begin)
        need = "" if last == begin or self.text[last - 1] in ";," else ";"
        line = self.text.rfind("\n", 0, end) + 1
        if line > begin and not self.text[line:end].strip():  # the brace has a line of its own
            indent = self.text[line:end] + "    "
            text = self.text[:last] + need + self.text[last:line] + indent + setting + "\n" + self.text[line:]
        else:
            text = self.text[:last] + need + " " + setting + " " + (self.text[last:end].lstrip(" ") or "") + self.text[end:]
        return Conf(text).remark(path, comment)

    def remark(self, path: str, comment: Optional[str]) -> Conf:
        if comment is None:
            return self
        line = self.text.rfind("\n", 0, self.at[path][0]) + 1
        if any(b < line < e for b, e in self.comments):  # the line begins within a comment
            end = self.at[path][1]
            return Conf(self.text[:end] + " /* %s */" % comment.replace("*/", "* /") + self.text[end:])
        above = self.text[:line].splitlines(True)
        mine = "# calibrated: %s " % path
        first = len(above)
        while first > 0 and above[first - 1].lstrip().startswith("# calibrated: "):
            first -= 1
        above[first:] = [x for x in above[first:] if not x.lstrip().startswith(mine)]  # of an earlier calibration
        indent = self.text[line : len(self.text) - len(self.text[line:].lstrip(" \t"))]
        return Conf("".join(above) + indent + mine + comment + "\n" + self.text[line:])
