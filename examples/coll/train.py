#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A training loop whose computation is declared: 500 us of fabric time a step, then an all-reduce of the gradients.

    trib exec h0 -- ./train.py 127.0.0.1:4713 0 8      (and h1 ... h7 as ranks 1 to 7)
"""
import ctypes as c
import sys

from all_reduce import SUM, Oob, must, trib

FLOAT32, STEPS, GRADIENTS, COMPUTE_US = 7, 5, 1 << 18, 500.0
trib.trib_compute.restype = c.c_int64
trib.trib_compute.argtypes = [c.c_double]


def main(address, rank, size):
    err, oob = c.create_string_buffer(256), Oob()
    store, comm, request = c.c_void_p(), c.c_void_p(), c.c_void_p()
    must(trib.trib_store_open(c.byref(store), address.encode(), rank, size, c.c_double(30), err), err)
    trib.trib_store_oob(store, c.byref(oob))
    must(trib.trib_comm_create(c.byref(comm), c.byref(oob), None, err), err)
    gradients = (c.c_float * GRADIENTS)(*([1.0] * GRADIENTS))
    for step in range(STEPS):
        begin = trib.trib_time_ps()
        trib.trib_compute_begin()  # here a program computes the gradients
        lag = trib.trib_compute(COMPUTE_US)
        computed = trib.trib_time_ps()
        must(trib.trib_all_reduce(comm, gradients, gradients, c.c_size_t(GRADIENTS), FLOAT32, SUM, c.byref(request), err), err)
        if trib.trib_wait(request):
            sys.exit(f"train.py: {trib.trib_comm_error(comm).decode()}")
        trib.trib_free(request)
        if rank == 0:
            print(f"step {step}: computes {(computed - begin) / 1e6:.1f} us (lag {lag / 1e6:.1f} us), communicates {(trib.trib_time_ps() - computed) / 1e6:.1f} us")
    assert gradients[0] == float(size) ** STEPS, "a wrong sum"
    trib.trib_comm_destroy(comm)
    trib.trib_store_close(store)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: train.py ADDRESS:PORT RANK SIZE")
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
