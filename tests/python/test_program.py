# SPDX-License-Identifier: BSD-3-Clause
"""scripts/program.py: which command it is by its name, and where it finds the package."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "scripts" / "program.py"
COMMAND = """\
import sys
def main():
    print(__name__, __file__.replace(%r, "TOP"), sys.argv[1:])
    return 7
"""


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(os.path.realpath(folder.name)) / "a b"

    def package(self, at, name):
        """A package with one command at a place."""
        folder = self.top / at / "tributary" / name
        folder.mkdir(parents=True)
        for file, text in ((folder.parent / "__init__.py", ""), (folder / "__init__.py", ""), (folder / "command.py", COMMAND % str(self.top))):
            file.write_text(text, encoding="utf-8")

    def copy(self, at):
        to = self.top / at
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAM, to)
        return to

    def says(self, path, *argv):
        done = subprocess.run([str(path), *argv], cwd="/", capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""})
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def test_a_copy_finds_the_package_of_its_prefix(self):
        self.package("lib/python3/dist-packages", "importer")
        self.assertEqual(self.says(self.copy("bin/trib-import"), "x", "y z"),
                         (7, "tributary.importer.command TOP/lib/python3/dist-packages/tributary/importer/command.py ['x', 'y z']", ""))

    def test_a_copy_in_libexec_finds_it_too(self):
        self.package("lib/python3/dist-packages", "capture")
        self.assertIn("TOP/lib/python3/dist-packages/tributary/capture", self.says(self.copy("libexec/tributary/trib-capture"))[1])

    def test_links_are_followed_to_the_name_of_a_command(self):
        self.package("python", "report")
        self.copy("scripts/program.py")
        (self.top / "scripts" / "trib-report").symlink_to("program.py")
        (self.top / "mine").symlink_to("scripts/trib-report")
        want = (7, "tributary.report.command TOP/python/tributary/report/command.py []", "")
        self.assertEqual(self.says(self.top / "scripts" / "trib-report"), want)
        self.assertEqual(self.says(self.top / "mine"), want)

    def test_a_checkouts_package_comes_first(self):
        for at in ("lib/python3/dist-packages", "python"):
            self.package(at, "nccl")
        self.assertIn("TOP/python/tributary/nccl", self.says(self.copy("bin/trib-nccl"))[1])

    def test_another_name_is_none(self):
        code, out, err = self.says(self.copy("bin/trib-else"))
        self.assertEqual((code, out, err.split(",")[0]), (2, "", "trib-else: found no command of this name"))

    def test_every_command_has_a_link_and_a_module(self):
        sys.path.insert(0, str(PROGRAM.parent))
        self.addCleanup(sys.path.remove, str(PROGRAM.parent))
        import program

        for name, module in program.COMMANDS.items():
            self.assertEqual(os.readlink(PROGRAM.parent / name), "program.py")
            self.assertTrue((PROGRAM.parents[1] / "python" / "tributary" / f"{module.replace('.', '/')}.py").is_file(), module)


if __name__ == "__main__":
    unittest.main()
