#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""one_helper.py [FILE...]: fails on what maps, removes, renames or makes files in the making, or draws, compares and wipes secrets, outside of the
helper that does it safely.

C       mmap() of a file, memfd_create(), shm_open(): machine/shared.h, which checks seals. unlink(), rmdir(), remove() and their like: system/own_clear.h,
        by descriptors. rename(), mkstemp() and their like, and names made of getpid(): system/temp_file.h, system/own_clear.h.
        getrandom(), CRYPTO_memcmp(), explicit_bzero() and their like, memcmp() or a loop over what is called a secret, and getenv() of one:
        system/credential.h.
Python  os.replace(), Path.rename(), write_text() and their like, os.unlink(), shutil.rmtree(): tributary/_files.py.
Shell   names made of $$ or with .new or .tmp at the end, that are written to: mktemp.

Tests are their own business. Exceptions are single places, each with its reason; one that is not needed fails too. FILEs: these alone, without
exceptions.
"""
import ast
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
C_CALLS = {
    "map": ("machine/shared.h", r"mmap64|mmap|mremap|shm_open|memfd_create|shmat"),
    "remove": ("system/own_clear.h", r"unlinkat|unlink|rmdir|remove|nftw|ftw"),
    "rename": ("system/temp_file.h or system/own_clear.h", r"renameat2|renameat|rename|mkstemps?|mkostemps?|mkdtemp|mktemp|tmpnam|tempnam"),
    "secret": ("system/credential.h", r"getrandom|getentropy|CRYPTO_memcmp|timingsafe_bcmp|explicit_bzero|memset_s|OPENSSL_cleanse"),
}
SECRET = r"\w*(?:secret|token|digest|passw|passphrase)\w*"
PYTHON = "python/tributary/_files.py"
EXCEPTIONS = {  # (file, what): reason
    ("machine/shared.c", "map"): "the helper",
    ("machine/token.c", "map"): "a copy of the token, sealed against all; it is read, never mapped",
    ("host/hca/memory/mr.c", "map"): "a dma-buf that the program itself hands over; its pages may go, as any memory region's (memory/gone.c)",
    ("base/shortage/fault.h", "map"): "a macro that calls what it is put in place of",
    ("plugins/check/board.c", "map"): "of a check and its own ranks, sealed",
    ("system/credential.c", "secret"): "the helper",
    ("system/own_clear.c", "remove"): "the helper",
    ("system/own_clear.c", "rename"): "the helper",
    ("system/temp_file.c", "remove"): "the helper",
    ("system/temp_file.c", "rename"): "the helper",
    (PYTHON, "write"): "the helper",
    (PYTHON, "remove"): "the helper",
    (PYTHON, "rename"): "the helper",
    ("python/tributary/plot.py", "rename"): "a series of pandas",
    ("python/tributary/capture/output.py", "write"): "grows while it is read; the rules of system/own_path.h are in its own words there",
}


def bare(text):
    """C without comments and texts, with its lines."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def arguments(text, at):
    """What is between the parenthesis at `at` and its end."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if not depth:
            return text[at + 1:i]
    return text[at + 1:]


def in_c(text):
    plain = bare(text)
    for what, (helper, names) in C_CALLS.items():
        for m in re.finditer(r"(?<![\w.>])(%s)\s*\(" % names, plain):
            inside = arguments(plain, m.end() - 1)
            if m[1].startswith("mmap") and re.search(r"-1\s*,\s*0\s*$", inside):  # anonymous
                continue
            if re.search(r"(?:^|[\n;{}]\s*)(?:static |extern )?(?:\w+ \**)+$", plain[max(0, m.start() - 60):m.start()]) and "return" not in plain[m.start() - 8:m.start()]:
                continue  # a declaration
            yield plain.count("\n", 0, m.start()) + 1, what, "%s(), expected %s" % (m[1], helper)
    for m in re.finditer(r"\b(memcmp|bcmp|strn?cmp)\s*\(", plain):
        if re.search(r"(?:^|[^\w(])%s(?:\[|,|$)" % SECRET, re.sub(r"sizeof\([^)]*\)", "", arguments(plain, m.end() - 1))):
            yield plain.count("\n", 0, m.start()) + 1, "secret", "%s() of a secret, expected credential_same() of system/credential.h" % m[1]
    for n, line in enumerate(plain.split("\n"), 1):
        if re.search(r"%s\[\w+\] *(?:\^|[!=]=)(?! *(?:0|'))" % SECRET, line):
            yield n, "secret", "a secret byte by byte, expected credential_same() of system/credential.h"
    for n, line in enumerate(text.split("\n"), 1):
        if re.search(r'getenv\("\w*(?:SECRET|TOKEN|PASSW|PASSPHRASE)', line):
            yield n, "secret", "getenv() of a secret, expected credential_from_env() of system/credential.h"
        if re.search(r"printf\(.*%s[^\"]*\.%[du]\b.*getpid\(\)", line):
            yield n, "rename", "a name that can be guessed, of getpid(), expected system/temp_file.h"


def mode_of(call):
    given = call.args[1:2] + [k.value for k in call.keywords if k.arg == "mode"]
    return str(given[0].value) if given and isinstance(given[0], ast.Constant) else "r"


def in_python(text):
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        last = name.rsplit(".", 1)[-1]
        what = None
        if name in ("os.replace", "os.rename", "os.renames", "os.link", "shutil.move") or (last == "rename" and len(node.args) == 1 and not node.keywords and "." in name) \
                or (last == "replace" and name != "replace" and len(node.args) == 1 and not node.keywords) or name == "tempfile.mktemp":
            what = "rename"
        elif name in ("os.unlink", "os.remove", "os.rmdir", "shutil.rmtree", "os.removedirs") or (last in ("unlink", "rmdir") and "." in name):
            what = "remove"
        elif last in ("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to") or name in ("shutil.copy", "shutil.copy2", "shutil.copyfile") \
                or (name in ("open", "io.open") and re.search("[wax+]", mode_of(node))) or (name == "os.open" and "O_CREAT" in ast.unparse(node)):
            what = "write"
        if what:
            yield node.lineno, what, "%s(), expected %s" % (name, PYTHON)


def in_shell(text):
    for n, line in enumerate(text.split("\n"), 1):
        if re.search(r">>?\s*\"?[^\s\"|;&]*(?:\$\$|\.new\b|\.tmp\b)", re.sub(r"(?:^|\s)#.*", "", line)):
            yield n, "write", "a name that can be guessed, expected one of mktemp"


def reader_of(path, text):
    if path.endswith((".c", ".h", ".cu")):
        return in_c
    first = text.split("\n", 1)[0]
    if path.endswith(".py") or (first.startswith("#!") and "python" in first):
        return in_python
    if path.endswith(".sh") or (first.startswith("#!") and "sh" in first):
        return in_shell
    return None


def main(given):
    listed = given or subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    bad, used = 0, set()
    for path in sorted(set(listed)):
        if not given and path.startswith(("tests/", "examples/", "docs/", "packaging/", "plugins/openmpi/")):
            continue
        try:
            text = str(subprocess.run(["cat", "--", path], cwd=ROOT, capture_output=True, check=True).stdout, "utf-8")
        except (subprocess.CalledProcessError, UnicodeDecodeError):
            continue
        reader = reader_of(path, text)
        for line, what, found in sorted(reader(text)) if reader else ():
            if not given and (path, what) in EXCEPTIONS:
                used.add((path, what))
                continue
            print("one_helper: %s:%d: found %s" % (path, line, found))
            bad = 1
    for path, what in [] if given else sorted(set(EXCEPTIONS) - used):
        print("one_helper: exception of %s (%s) is not needed" % (path, what))
        bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
