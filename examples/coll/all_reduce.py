#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""All-reduce in the switches from Python, without a package: ctypes on libtributary.so.1.

    trib exec h0 -- ./all_reduce.py 127.0.0.1:4711 0 8      (and h1 ... h7 as ranks 1 to 7)
"""
import ctypes as c
import sys

UINT64, SUM = 5, 0  # enum trib_type, enum trib_sum (tributary/types.h)
trib = c.CDLL("libtributary.so.1")
trib.trib_time_ps.restype = c.c_int64
trib.trib_request_algo.restype = trib.trib_comm_error.restype = c.c_char_p


class Oob(c.Structure):
    _fields_ = [("ctx", c.c_void_p), ("rank", c.c_uint32), ("size", c.c_uint32),
                ("bcast", c.c_void_p), ("gather", c.c_void_p), ("barrier", c.c_void_p)]


def must(rc, err):
    if rc:
        sys.exit(f"all_reduce.py: {err.value.decode()}")


def main(address, rank, size):
    err, oob = c.create_string_buffer(256), Oob()
    store, comm, request = c.c_void_p(), c.c_void_p(), c.c_void_p()
    must(trib.trib_store_open(c.byref(store), address.encode(), rank, size, c.c_double(30), err), err)
    trib.trib_store_oob(store, c.byref(oob))
    must(trib.trib_comm_create(c.byref(comm), c.byref(oob), None, err), err)

    values = (c.c_uint64 * 100000)(*range(rank, rank + 100000))
    begin = trib.trib_time_ps()
    must(trib.trib_all_reduce(comm, values, values, c.c_size_t(len(values)), UINT64, SUM, c.byref(request), err), err)
    if trib.trib_wait(request):
        sys.exit(f"all_reduce.py: {trib.trib_comm_error(comm).decode()}")
    us = (trib.trib_time_ps() - begin) / 1e6
    assert all(v == size * (size - 1) // 2 + size * i for i, v in enumerate(values)), "a wrong sum"
    print(f"rank {rank} of {size}: {len(values)} sums, by {trib.trib_request_algo(request).decode()}, in {us:.1f} us of fabric time")
    trib.trib_free(request)
    trib.trib_comm_destroy(comm)
    trib.trib_store_close(store)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: all_reduce.py ADDRESS:PORT RANK SIZE")
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
