# SPDX-License-Identifier: BSD-3-Clause
"""Files are written as a whole or not at all, by nobody else's links, and keep their permissions."""
import os
import stat
import tempfile
import threading
import types
import unittest
from unittest import mock

from tributary import _files


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "x")
        self.umask = os.umask(0o022)

    def tearDown(self):
        os.umask(self.umask)
        self.folder.cleanup()

    def content(self, name="x"):
        with open(os.path.join(self.folder.name, name), encoding="utf-8") as f:
            return f.read()

    def mode(self):
        return stat.S_IMODE(os.stat(self.path).st_mode)

    def test_devices_and_descriptors_are_special(self):
        for path in ("/dev/stdout", "/dev/null", "/dev/fd/1", "/dev/pts/0", "/proc/self/fd/1"):
            self.assertTrue(_files._is_special(path), path)
        for path in ("/dev/shm/x", "/dev", "/proc", "x", "/devs/x", "/dev/fd/../shm/x", "/proc/../tmp/x"):
            self.assertFalse(_files._is_special(path), path)

    def test_a_file_has_the_mode_that_is_asked_for_or_that_it_had(self):
        _files.write_whole(self.path, "é")
        self.assertEqual((self.content(), self.mode()), ("é", 0o644))
        os.chmod(self.path, 0o640)
        _files.write_whole(self.path, "b")
        self.assertEqual((self.content(), self.mode()), ("b", 0o640))
        _files.write_whole(self.path, "c", 0o600)
        self.assertEqual((self.content(), self.mode()), ("c", 0o600))
        self.assertEqual(os.listdir(self.folder.name), ["x"])

    def test_a_name_without_a_folder_is_here(self):
        was = os.getcwd()
        os.chdir(self.folder.name)
        try:
            _files.write_whole("y", "here")
        finally:
            os.chdir(was)
        self.assertEqual(self.content("y"), "here")

    def test_a_link_is_replaced_and_not_followed(self):
        with open(os.path.join(self.folder.name, "kept"), "w", encoding="utf-8") as f:
            f.write("kept")
        os.chmod(os.path.join(self.folder.name, "kept"), 0o600)  # which is not taken over
        os.symlink("kept", self.path)
        _files.write_whole(self.path, "new")
        self.assertEqual((self.content(), self.content("kept")), ("new", "kept"))
        self.assertFalse(os.path.islink(self.path))
        self.assertEqual(self.mode(), 0o644)

    def test_a_folder_is_no_file(self):
        os.mkdir(self.path)
        with self.assertRaises(OSError) as e:
            _files.write_whole(self.path, "x")
        self.assertEqual((e.exception.errno, e.exception.strerror, e.exception.filename), (21, "Is a directory", self.path))
        with mock.patch("os.replace") as replaced, self.assertRaises(IsADirectoryError):
            _files.write_whole(self.path, "x")
        replaced.assert_not_called()
        with self.assertRaises(OSError) as e:
            _files.write_whole(os.path.join(self.folder.name, "none/x"), "x")
        self.assertEqual((e.exception.errno, e.exception.filename), (2, os.path.join(self.folder.name, "none/x")))

    def test_a_fifo_is_written_to_and_a_device_too(self):
        os.mkfifo(self.path)
        got = []
        reader = threading.Thread(target=lambda: got.append(self.content()))
        reader.start()
        _files.write_whole(self.path, "through")
        reader.join()
        self.assertEqual(got, ["through"])
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path).st_mode))
        _files.write_whole("/dev/null", "x")

    def test_a_descriptor_is_written_to_and_none_stays_open(self):
        read, write = os.pipe()
        before = len(os.listdir("/proc/self/fd"))
        _files.write_whole(f"/dev/fd/{write}", "x")
        _files.write_whole(self.path, "y")
        self.assertEqual((os.read(read, 9), len(os.listdir("/proc/self/fd"))), (b"x", before))
        os.close(read)
        os.close(write)

    def test_another_user_s_fifo_is_not_written_to(self):
        for owner, user, written in ((7, 7, True), (0, 7, True), (7, 8, False), (1, 8, False)):
            asked = []
            found = types.SimpleNamespace(st_uid=owner, st_mode=stat.S_IFIFO | 0o644)
            with mock.patch("os.stat", lambda name, dir_fd, follow_symlinks, found=found: (asked.append((name, dir_fd, follow_symlinks)), found)[1]):
                with mock.patch("os.geteuid", lambda user=user: user), mock.patch("os.open", side_effect=BlockingIOError), self.assertRaises(OSError) as e:
                    _files._append(b"n", b"d", 5)
            self.assertEqual(asked, [(b"n", 5, False)])
            self.assertEqual(isinstance(e.exception, BlockingIOError), written)
        self.assertEqual((e.exception.errno, e.exception.strerror, e.exception.filename), (1, "found prw-r--r-- of user 1, expected a file of this user's", "n"))

    def test_when_writing_fails_all_is_as_it_was(self):
        _files.write_whole(self.path, "old")
        with mock.patch("os.replace", side_effect=OSError(28, "full")), self.assertRaises(OSError) as e:
            _files.write_whole(self.path, "new")
        self.assertEqual((e.exception.errno, e.exception.strerror, e.exception.filename), (28, "full", self.path))
        self.assertEqual(self.content(), "old")
        self.assertEqual(os.listdir(self.folder.name), ["x"])

    def test_a_new_file_is_empty_and_its_own(self):
        with open(os.path.join(self.folder.name, "kept"), "w", encoding="utf-8") as f:
            f.write("kept")
        os.symlink("kept", self.path)
        with _files.new_file(self.path) as f:
            f.write(b"grown")
        self.assertEqual((self.content(), self.content("kept")), ("grown", "kept"))
        _files.discard(self.path)
        _files.discard(self.path)
        self.assertEqual(os.listdir(self.folder.name), ["kept"])


if __name__ == "__main__":
    unittest.main()
