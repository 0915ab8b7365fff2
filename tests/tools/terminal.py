#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A terminal for a program: terminal.py OUT STEP... -- CMD...  Steps: size=ROWSxCOLUMNS, type=KEYS, wait=SECONDS, show=NAME (writes the screen
to OUT/NAME), until=TEXT (it has failed, with exit status 125, where TEXT does not come within 40 s). Exit status: the program's, or 124 where it
does not end within 5 s of the last step. Needs pyte."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pyte

at = sys.argv.index("--")
out, steps, command = sys.argv[1], sys.argv[2:at], sys.argv[at + 1 :]
screen = pyte.Screen(80, 24)
stream = pyte.ByteStream(screen)
master, slave = pty.openpty()
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
os.close(slave)


def read(seconds):
    """Takes what the program writes meanwhile. False: it has ended."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            try:
                stream.feed(os.read(master, 65536))
            except OSError:
                return False
    return True


for step in steps:
    what, value = step.split("=", 1)
    if what == "size":
        rows, columns = map(int, value.split("x"))
        screen.resize(rows, columns)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.killpg(child.pid, signal.SIGWINCH)
    elif what == "type":
        os.write(master, value.encode())
    elif what == "wait":
        read(float(value))
    elif what == "until":
        end = time.monotonic() + 40
        while not any(value in line for line in screen.display):
            if time.monotonic() > end:
                print(f"terminal.py: found no '{value}' within 40 s on\n" + "\n".join(screen.display))
                child.kill()
                sys.exit(125)
            read(0.1)
    elif what == "show":
        with open(os.path.join(out, value), "w") as f:
            f.write("".join(line.rstrip() + "\n" for line in screen.display))
read(0.2)
end = time.monotonic() + 5
while child.poll() is None and time.monotonic() < end:
    read(0.1)
if child.poll() is None:
    child.kill()
    sys.exit(124)
read(0.1)
sys.exit(child.returncode)
