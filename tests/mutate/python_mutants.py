# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of a Python file: one small change each, in the bodies of its functions."""
import io
import tokenize

from mutant import Mutant

SWAPS = {
    "<": ("comparison", "<="), "<=": ("comparison", "<"), ">": ("comparison", ">="), ">=": ("comparison", ">"),
    "==": ("comparison", "!="), "!=": ("comparison", "=="), "and": ("logic", "or"), "or": ("logic", "and"),
    "+": ("arithmetic", "-"), "-": ("arithmetic", "+"), "*": ("arithmetic", "/"), "/": ("arithmetic", "*"), "//": ("arithmetic", "/"),
    "+=": ("arithmetic", "-="), "-=": ("arithmetic", "+="), "True": ("constant", "False"), "False": ("constant", "True"),
    "min": ("extremum", "max"), "max": ("extremum", "min"), "not": ("condition", ""), "break": ("statement", "pass"),
    "continue": ("statement", "pass"), "any": ("extremum", "all"), "all": ("extremum", "any"),
}


def places(text):
    """The tokens, each with its place in the text."""
    begins = [0]
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        yield t, begins[t.start[0] - 1] + t.start[1], begins[t.end[0] - 1] + t.end[1]


def changes(found, i):
    t, start, end = found[i]
    before, after = found[i - 1][0], found[i + 1][0]
    binary = before.type in (tokenize.NAME, tokenize.NUMBER) or before.string in (")", "]", "}")
    if t.string in SWAPS and t.type in (tokenize.NAME, tokenize.OP) and (binary or t.type == tokenize.NAME):
        if not (before.string in (".", "def", "(", ",") and after.string == "=") and not (t.string in ("*", "-") and before.string in ("(", ",")):
            yield *SWAPS[t.string][:1], start, end, SWAPS[t.string][1]
    if t.type == tokenize.NUMBER and t.string.isdigit():
        yield "constant", start, end, str(int(t.string) + 1)
    if t.string in ("if", "while", "elif") and t.type == tokenize.NAME and before.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
        depth, j = 0, i + 1
        while depth or found[j][0].string != ":":
            depth += (found[j][0].string in "([{") - (found[j][0].string in ")]}") if found[j][0].type == tokenize.OP else 0
            j += 1
        if t.string != "while":
            yield "condition", found[i + 1][1], found[j][1], "!()"
    if t.type == tokenize.NAME and before.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
        j = next(k for k in range(i, len(found)) if found[k][0].type in (tokenize.NEWLINE, tokenize.ENDMARKER))
        if t.string in ("raise",) or (after.string in ("(", ".", "[", "=", "+=", "-=", ",") and found[j - 1][0].string != ":"):
            yield "statement", start, found[j][1], "pass"


def mutants(file, text, _seen=None):
    found = [p for p in places(text) if p[0].type not in (tokenize.COMMENT, tokenize.NL)]
    indents, bodies, made = 0, [], {}
    for i, (t, *_) in enumerate(found[:-2]):
        indents += (t.type == tokenize.INDENT) - (t.type == tokenize.DEDENT)
        while bodies and t.type not in (tokenize.INDENT, tokenize.DEDENT) and indents <= bodies[-1] and found[i - 1][0].type == tokenize.DEDENT:
            bodies.pop()
        if t.string == "def" and t.type == tokenize.NAME:
            bodies.append(indents)
        if not bodies or indents <= bodies[-1]:
            continue
        for kind, start, end, instead in changes(found, i):
            if instead == "!()":
                instead = f"not ({text[start:end]})"
            m = Mutant(file, text, kind, start, end, instead)
            try:
                compile(m.source(), file, "exec")
            except SyntaxError:
                continue
            made[m.source()] = m
    return list(made.values())
