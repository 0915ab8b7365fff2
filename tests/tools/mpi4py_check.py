#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py on a fabric: arrays, objects, parts of the world and one-to-one messages, every result checked. A line from rank 0."""
import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
N = 100000

total = size * (size - 1) // 2
for code, kind in (("d", MPI.DOUBLE), ("f", MPI.FLOAT), ("i", MPI.INT), ("q", MPI.LONG_LONG)):
    mine = array.array(code, [rank + i % 1000 for i in range(N)])
    sums = array.array(code, [0] * N)
    world.Allreduce([mine, kind], [sums, kind], op=MPI.SUM)
    assert all(sums[i] == total + size * (i % 1000) for i in range(N)), code
    world.Allreduce(MPI.IN_PLACE, [mine, kind], op=MPI.MAX)
    assert all(mine[i] == size - 1 + i % 1000 for i in range(N)), code

assert world.allreduce(rank) == total  # an object: a function of the program's own
assert world.allgather(rank) == list(range(size))
assert world.bcast({"a": [1, 2]} if rank == size - 1 else None, root=size - 1) == {"a": [1, 2]}
assert world.alltoall([rank * size + i for i in range(size)]) == [i * size + rank for i in range(size)]
assert world.gather(rank, root=0) == (list(range(size)) if rank == 0 else None)

half = world.Split(rank % 2, rank)
one = array.array("d", [1.0])
half.Allreduce(MPI.IN_PLACE, [one, MPI.DOUBLE])
assert one[0] == half.size
half.Free()

got = array.array("i", [0] * N)
world.Sendrecv([array.array("i", [rank] * N), MPI.INT], (rank + 1) % size, recvbuf=[got, MPI.INT], source=(rank - 1) % size)
assert set(got) == {(rank - 1) % size}
world.Barrier()
if rank == 0:
    print(f"mpi4py_check: {size} ranks, 0 wrong")
