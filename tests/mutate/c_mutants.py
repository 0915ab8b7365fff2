# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of a C file: one small change each, in the bodies of its functions, where the compiler sees them."""
import re

from mutant import Mutant

TOKEN = re.compile(
    r'(?P<space>\s+)|(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\')'
    r"|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)",
    re.S,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.M | re.S)

# Checks of other builds, text for people and hints to the CPU: no test of behaviour decides these.
NOT_BEHAVIOUR = re.compile(r"^(T_ASSERT\w*|static_assert|log_\w+|(trace|prefetch|rte_prefetch|__builtin_prefetch)\w*|\w+_record)$")
# More memory than is used is no other behaviour; less is found by AddressSanitizer.
ALLOCATES = re.compile(r"^(calloc|malloc|realloc|reallocarray|aligned_alloc|build_alloc|arena_alloc|cacheline_(take|alloc))$")
SWAPS = {
    "<": ("comparison", "<="), "<=": ("comparison", "<"), ">": ("comparison", ">="), ">=": ("comparison", ">"),
    "==": ("comparison", "!="), "!=": ("comparison", "=="), "&&": ("logic", "||"), "||": ("logic", "&&"),
    "+": ("arithmetic", "-"), "-": ("arithmetic", "+"), "+=": ("arithmetic", "-="), "-=": ("arithmetic", "+="),
    "++": ("arithmetic", "--"), "--": ("arithmetic", "++"), "<<": ("arithmetic", ">>"), ">>": ("arithmetic", "<<"),
    "RTE_MIN": ("extremum", "RTE_MAX"), "RTE_MAX": ("extremum", "RTE_MIN"), "true": ("constant", "false"), "false": ("constant", "true"),
}
WORDS = {"if", "for", "while", "switch", "return", "else", "do", "case", "default", "goto", "break", "continue", "sizeof", "struct", "union",
         "enum", "const", "static", "typedef", "unsigned", "void", "int", "char", "long", "short", "bool", "double", "float"}


class Token:
    """A token that means something: its kind, text, place, nesting, and whether it is within a function."""

    def __init__(self, kind, text, at, depth):
        self.kind, self.text, self.at, self.depth, self.inside = kind, text, at, depth, False

    @property
    def end(self):
        return self.at + len(self.text)


def tokens(text):
    blank = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    found, depth = [], 0
    for m in TOKEN.finditer(blank):
        if m.lastgroup in ("space", "comment"):
            continue
        word = m.group()
        depth -= word in ")]}"
        found.append(Token(m.lastgroup, word, m.start(), depth))
        depth += word in "([{"
    mark_functions(found)
    return found


def mark_functions(found):
    body = False
    for i, t in enumerate(found):
        if t.depth == 0 and t.text == "{":
            body = i > 0 and found[i - 1].text == ")"
        elif t.depth == 0 and t.text == "}":
            body = False
        t.inside = body and t.depth > 0


def closing(found, i):
    """The index of what closes the bracket at i."""
    j = i + 1
    while j < len(found) and found[j].depth > found[i].depth:
        j += 1
    return j


def in_parentheses(found, i):
    """Whether the innermost bracket around the token at i is a round one: an argument, a condition, the head of a for."""
    j = i - 1
    while j > 0 and found[j].depth >= found[i].depth:
        j -= 1
    return found[j].text == "("


def starts_statement(found, i):
    before = found[i - 1]
    if before.text in (";", "{", "}", "else", "do"):
        return (before.depth == found[i].depth or before.text == "{") and not in_parentheses(found, i)
    if before.text == ")":  # of if (...), for (...), while (...)
        j = i - 1
        while found[j].depth > before.depth or found[j].text != "(":
            j -= 1
        return found[j - 1].text in ("if", "for", "while")
    return before.text == ":" and i > 2 and (found[i - 3].text == "case" or found[i - 2].text == "default")


def statement_end(found, i):
    """The index of the semicolon that ends the statement at i, or None where a block comes first."""
    for j in range(i, len(found)):
        if found[j].depth < found[i].depth or found[j].text == "{" and found[j].depth == found[i].depth:
            return None
        if found[j].text == ";" and found[j].depth == found[i].depth:
            return j
    return None


def is_declaration(found, i):
    a, b, c = found[i], found[i + 1], found[i + 2]
    return a.text in WORDS or (a.kind == "name" and (b.kind == "name" or (b.text == "*" and c.kind == "name" and found[i + 3].text in "=;,")))


def statements(found, i):
    """Changes of the statement that begins at i."""
    t = found[i]
    end = statement_end(found, i)
    if end is None:
        return
    if t.text in ("break", "continue") or (t.text == "return" and end == i + 1):
        yield "statement", t.at, found[end].at, ""
    elif t.text == "return" and end > i + 2:
        yield "return", found[i + 1].at, found[end].at, "0"
    elif t.text not in WORDS and t.kind in ("name", "op") and not is_declaration(found, i) and t.text not in ("{", "}", ";"):
        if not (t.kind == "name" and found[i + 1].text == ":"):  # a label
            yield "statement", t.at, found[end].at, ""


def operands(found, i):
    """A condition without what is right, and without what is left, of the && or || at i."""
    t = found[i]
    stops = {";", "?", ":", ",", "||", "&&"} if t.text == "&&" else {";", "?", ":", ",", "||"}
    j = i + 1
    while j < len(found) and found[j].depth >= t.depth and not (found[j].depth == t.depth and found[j].text in stops):
        j += 1
    yield "operand", t.at, found[j - 1].end, ""
    k = i - 1
    stops |= {"=", "return", "+=", "|=", "&=", "{"}
    while found[k].depth >= t.depth and not (found[k].depth == t.depth and found[k].text in stops):
        k -= 1
    yield "operand", found[k + 1].at, found[i + 1].at, ""


def changes(found, i):
    """All changes at the token at i: operator, from, to, text instead."""
    t, before, after = found[i], found[i - 1], found[i + 1]
    binary = before.kind in ("name", "number") and before.text not in WORDS or before.text in (")", "]")
    steps = t.text in ("++", "--")
    if t.text in SWAPS and (binary or steps or t.kind == "name") and not (steps and in_parentheses(found, i)):  # a loop without an end
        kind, instead = SWAPS[t.text]
        yield kind, t.at, t.end, instead
    if t.text in ("&&", "||"):
        yield from operands(found, i)
    if t.text == "!" and after.text != "!":
        yield "condition", t.at, t.end, ""
    if t.text == "if" and after.text == "(":
        close = found[closing(found, i + 1)]
        yield "condition", after.end, close.at, "!()"
    if t.kind == "number" and re.fullmatch(r"(0x[0-9a-fA-F]+|\d+)[uUlL]*", t.text) and not (before.text == "[" and after.text == "]"):
        value = re.sub(r"[uUlL]+$", "", t.text)
        n = int(value, 16 if value.startswith("0x") else 10)
        if n or before.text not in ("<", ">="):  # "failed" is any negative number
            yield "constant", t.at, t.at + len(value), str(n + 1)
        if n == 1:
            yield "constant", t.at, t.at + len(value), "0"
    if starts_statement(found, i):
        yield from statements(found, i)


def mutants(file, text, seen):
    """All mutants of a file; seen are the numbers of the lines that the compiler sees."""
    found = tokens(text)
    until, memory, made = -1, -1, []
    for i, t in enumerate(found[:-4]):
        if ALLOCATES.match(t.text) and found[i + 1].text == "(":
            memory = max(memory, found[closing(found, i + 1)].end)
        if NOT_BEHAVIOUR.match(t.text) and found[i + 1].text == "(":
            until = max(until, found[closing(found, i + 1)].end)
        if not t.inside or t.at < until or text.count("\n", 0, t.at) + 1 not in seen:
            continue
        for kind, start, end, instead in changes(found, i):
            if kind == "constant" and t.at < memory and instead != "0" and found[i - 1].text not in ("-", "["):
                continue
            if instead == "!()":
                instead = f"!({text[start:end]})"
            made.append(Mutant(file, text, kind, start, end, instead))
    return list({m.source(): m for m in made}.values())
