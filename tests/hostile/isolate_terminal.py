#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An interactive shell on a terminal, and a user's keys: usage: isolate_terminal.py TRIB DIR. Prints what is wrong, and "done"."""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

TRIB, DIR = sys.argv[1:]
RUN = "%s exec --isolate two-hosts h0 -- " % TRIB
PROMPT = "ready> "


def bad(*words):
    print("BAD:", *words, flush=True)


class Shell:
    def __init__(self):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(PS1=PROMPT, TERM="dumb", HISTFILE="/dev/null")
            os.environ.pop("PROMPT_COMMAND", None)
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.size(24, 80)
        self.text = ""
        self.until(re.escape(PROMPT) + "$")

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, pattern, seconds=20):
        """What comes until the pattern; "" and a line that says so: it does not come."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                bad("no", repr(pattern), "within", seconds, "s:", repr(self.text[-600:]))
                said, self.text = self.text, ""
                return ""
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\r", "")
            except OSError:
                bad("the shell has ended:", repr(self.text[-600:]))
                sys.exit(1)
        said, self.text = self.text, ""
        return said

    def keys(self, text):
        os.write(self.fd, text.encode())

    def run(self, line):
        self.keys(line + "\n")
        return self.until(r"\n" + re.escape(PROMPT) + "$")

    def code(self):
        return re.search(r"is (\d+)", self.run("echo is $?")).group(1)


with open(DIR + "/attack.py", "w") as f:
    f.write(
        """
import fcntl, os, termios
def attempt(fd, name):
    for byte in b"\\ntouch %s/typed\\n":
        for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 32):
            try:
                fcntl.ioctl(fd, request, bytes([byte])) if request < 1 << 31 else libc_ioctl(fd, request, byte)
                print("BAD: types at", name)
            except OSError as e:
                assert e.errno == 1, e
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def libc_ioctl(fd, request, byte):
    if libc.syscall(16 if os.uname().machine == "x86_64" else 29, fd, ctypes.c_ulong(request), bytes([byte])):
        raise OSError(ctypes.get_errno(), "ioctl")
for fd in range(3):
    attempt(fd, fd)
for name in ["/dev/tty"] + ["/dev/pts/" + n for n in os.listdir("/dev/pts") if n != "ptmx"]:
    attempt(os.open(name, os.O_RDWR | os.O_NOCTTY), name)
print("terminals:", sorted(os.listdir("/dev/pts")))
print("leads a session:", os.getsid(0) != os.getpid())
"""
        % DIR
    )

s = Shell()
before = s.run("stty -g")
tty = re.search(r"/dev/pts/\d+", s.run("tty")).group(0)

# typing into the shell
said = s.run(RUN + "python3 %s/attack.py; echo over" % DIR)
if "BAD" in said or "terminals: ['0', 'ptmx']" not in said:
    bad("the terminal:", said)
time.sleep(0.3)
s.run("true")
if os.path.exists(DIR + "/typed"):
    bad("has typed into the user's shell")
if os.path.basename(tty) != "0" and "no" not in s.run(RUN + "sh -c 'test -e %s || echo no'" % tty):
    bad("sees the user's terminal", tty)

# a terminal all the same: keys, signals, size, settings
said = s.run(RUN + "sh -c 'tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo three'")
if "/dev/pts/0" not in said or "24 80" not in said or "three" not in said:
    bad("no terminal:", said)
s.keys(RUN + "sh -c 'trap \"stty size; exit\" WINCH; echo up; while :; do sleep 0.1; done'\n")
s.until(r"\nup\n")
s.size(40, 100)
if "40 100" not in s.until(r"\n" + re.escape(PROMPT) + "$"):
    bad("the window's size does not come")
s.keys(RUN + "sh -c 'echo up; exec sleep 100'\n")
s.until(r"\nup\n")
s.keys("\x03")
s.until(re.escape(PROMPT) + "$")
if s.code() != "130":
    bad("Ctrl-C does not end it")
s.keys(RUN + "sh -c 'trap \"\" INT; echo up; sleep 1; echo still'\n")
s.until(r"\nup\n")
s.keys("\x03")
if "still" not in s.until(re.escape(PROMPT) + "$"):
    bad("Ctrl-C ends one that ignores it")
s.keys(RUN + "sh -c 'echo up; cat; echo end'\n")
s.until(r"\nup\n")
s.keys("some words\n")
s.until(r"some words\nsome words\n")
s.keys("\x04")
if "end" not in s.until(re.escape(PROMPT) + "$"):
    bad("end of file does not come")

# job control (a shell that waits for the start of a command may not be stopped: vfork)
s.keys(RUN + "sh -c 'echo up; read x; echo slept'\n")
s.until(r"\nup\n")
s.keys("\x1a")
s.until(r"Stopped.*\n" + re.escape(PROMPT) + "$")
if s.run("stty -g").split("\n")[1] != before.split("\n")[1]:
    bad("a stopped one leaves the terminal changed")
s.keys("fg\n")
s.until(r"trib exec .*\n")
s.keys("\n")
if "slept" not in s.until(r"(slept\n|ready> )" + re.escape(PROMPT) + "$"):
    bad("fg does not continue it")
s.run(RUN + "sh -c 'sleep 0.5; echo behind >%s/behind' &" % DIR)
time.sleep(3)
if not os.path.exists(DIR + "/behind"):
    bad("does not run in the background")
s.run("wait")

# a script's process group and keys are its own: what an isolated program does stops only itself, and what the script asks for is not for it
def script(text):
    with open(DIR + "/script", "w") as f:
        f.write(text)
    return "sh %s/script\n" % DIR


for stop in "STOP", "TSTP":
    for stream in "/dev/null", "/dev/tty":
        s.keys(script(RUN + "sh -c 'kill -%s $$; exit 9' <%s & p=$!; sleep 2; echo goes on; kill -CONT $p; wait $p; echo $? then\n" % (stop, stream)))
        if "goes on\n9 then\n" not in s.until(r"\n" + re.escape(PROMPT) + "$"):
            bad("SIG%s stops the script, standard input %s" % (stop, stream))
            s.run("fg; true")
s.keys(script(RUN + "sh -c 'echo up; read x; echo slept'; echo script on\n"))
s.until(r"\nup\n")
s.keys("\x1a")
s.until(r"Stopped.*\n" + re.escape(PROMPT) + "$")
s.keys("fg\n")
s.until(r"sh .*\n")
time.sleep(0.3)
s.keys("\n")
if not re.search(r"slept\n.*script on\n", s.until(r"\n" + re.escape(PROMPT) + "$"), re.S):
    bad("fg does not continue a script")
for ask in "read x </dev/tty; echo stolen by $x", "kill -TTIN $$; read x </dev/tty; echo stolen by $x", "kill -TTOU $$; sleep 9":
    s.keys(script(RUN + "sh -c '%s' & sleep 2; stty -a | grep -ow .icanon; echo asks; read y; echo mine $y; kill $!\n" % ask))
    said = s.until(r"\nasks\n")
    s.keys("secret\n")
    said += s.until(r"\n" + re.escape(PROMPT) + "$")
    if "mine secret" not in said or "stolen" in said or "-icanon" in said:
        bad("a script's keys are taken:", ask, said)

# an interactive shell inside, with jobs of its own
s.keys(RUN + "env PS1='inside> ' bash --norc --noprofile --noediting -i\n")
s.until(r"inside> $")
s.keys("sleep 50\n")
time.sleep(0.5)
s.keys("\x1a")
s.until(r"Stopped.*sleep 50\ninside> $")
s.keys("kill -KILL %1; while jobs -s | grep sleep; do sleep 0.1; done\n")  # exit does not leave a stopped one
s.keys("jobs; echo $TRIB_HOST; exit 7\n")
said = s.until(re.escape(PROMPT) + "$")
if "h0" not in said or s.code() != "7":
    bad("a shell inside:", said)

# nothing of the output is lost; pipes stay pipes, and only who asks has the keys
said = s.run(RUN + "seq 1 30000")
if said.count("\n") < 30000 or "\n30000\n" not in said:
    bad("output is lost: %d lines" % said.count("\n"))
s.keys(RUN + "seq 1 30000\n")
time.sleep(2)  # the terminal takes nothing
said = s.until(r"\n" + re.escape(PROMPT) + "$")
if said.count("\n") < 30000 or "\n30000\n" not in said:
    bad("output to a terminal that stood still is lost: %d lines" % said.count("\n"))

# a terminal that takes nothing keeps no signal from the program, nor the end of what waits for it
s.keys(RUN + """sh -c 'trap ": >%s/termed; exit 3" TERM; yes & wait' & p=$!; (sleep 3; kill -TERM $p)\n""" % DIR)
end = time.monotonic() + 30
while not os.path.exists(DIR + "/termed") and time.monotonic() < end:
    time.sleep(0.1)
if not os.path.exists(DIR + "/termed"):
    bad("a terminal that takes nothing keeps SIGTERM from the program")
s.keys("wait $p; echo is $?\n")  # what the terminal had not taken comes after the prompt
if not re.search(r"\nis 3\n", s.until(r"\nis \d+\n" + re.escape(PROMPT) + "$", 30)):
    bad("who waits for a terminal that takes nothing has not ended with 3")
said = s.run("printf 'a\\nb\\n' | " + RUN + "sh -c 'test -t 0 || echo pipe; cat' | cat -A")
if "pipe$\na$\nb$\n" not in said:
    bad("a pipe is none:", said)
if "one line$" not in s.run("echo 'one line' | " + RUN + "cat | cat -A"):
    bad("a pipeline")
s.keys(RUN + "sh -c 'echo up >&2; read x; echo got $x' | cat -A\n")
s.until(r"\nup\n")
time.sleep(0.3)
s.keys("keys\n")
if "got keys$" not in s.until(re.escape(PROMPT) + "$"):
    bad("one of a pipeline that asks for keys does not get them")
s.keys("echo x | " + RUN + "sh -c 'cat; echo up; read y </dev/tty; echo got $y'\n")
s.until(r"\nup\n")
time.sleep(0.3)
s.keys("more\n")
if "got more" not in s.until(re.escape(PROMPT) + "$"):
    bad("a pager does not get keys")
if s.run("stty -g").split("\n")[1] != before.split("\n")[1]:
    bad("the terminal is changed")

# the terminal goes away
s.keys(RUN + "sh -c 'trap \"echo hup >%s/hup; exit\" HUP; echo up; while :; do sleep 0.1; done'\n" % DIR)
s.until(r"\nup\n")
os.close(s.fd)
end = time.monotonic() + 10
while not os.path.exists(DIR + "/hup") and time.monotonic() < end:
    time.sleep(0.1)
if not os.path.exists(DIR + "/hup"):
    bad("the program is not told that its terminal is gone")
print("done")
