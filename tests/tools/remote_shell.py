#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A remote shell between network namespaces, in place of ssh: no keys, no terminal.

usage: remote_shell.py serve ADDRESS         runs what clients ask for, until it is killed
       remote_shell.py ADDRESS CMD [ARG...]  runs CMD there: standard input and output are those of this process
"""
import json
import os
import select
import socket
import subprocess
import sys

PORT = 4796


def serve(address):
    s = socket.create_server((address, PORT))
    while True:
        c, _ = s.accept()
        if os.fork():
            c.close()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            continue
        line = b""
        while not line.endswith(b"\n"):
            byte = c.recv(1)
            if not byte:
                os._exit(1)
            line += byte
        os._exit(subprocess.call(json.loads(line), stdin=c, stdout=c))


def client(address, cmd):
    c = socket.create_connection((address, PORT))
    c.sendall(json.dumps(cmd).encode() + b"\n")
    inputs = [0, c]
    while True:
        for f in select.select(inputs, [], [])[0]:
            try:
                data = os.read(0, 65536) if f == 0 else c.recv(65536)
            except ConnectionResetError:
                sys.exit("remote_shell.py: %s has ended the connection" % address)
            if not data and f == 0:
                c.shutdown(socket.SHUT_WR)
                inputs.remove(0)
            elif not data:
                return
            elif f == 0:
                c.sendall(data)
            else:
                while data:
                    data = data[os.write(1, data):]


if sys.argv[1] == "serve":
    serve(sys.argv[2])
client(sys.argv[1], sys.argv[2:])
