/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference of tests/bench/bench_collectives.sh: the mean time of one MPI_Allreduce of BYTES
 * (float, sum), over ITERS of them after a warm-up, on the slowest rank.
 * usage: mpi_allreduce BYTES ITERS. Prints milliseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int run(size_t count, int iters, const float *in, float *out, int rank, int n)
{
    double begin = 0, ms, worst;

    for (int i = -1; i < iters; i++) {
        MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (i < 0)
            MPI_Barrier(MPI_COMM_WORLD);
        if (i < 0)
            begin = MPI_Wtime();
    }
    ms = (MPI_Wtime() - begin) * 1e3 / iters;
    MPI_Reduce(&ms, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++)
        if (out[i] != (float)(n * (n + 1) / 2) * (float)(i % 17))
            return 1;
    if (!rank)
        printf("%.6f\n", worst);
    return 0;
}

int main(int argc, char **argv)
{
    size_t bytes = argc == 3 ? strtoull(argv[1], NULL, 10) : 0, count = bytes / sizeof(float);
    int iters = argc == 3 ? atoi(argv[2]) : 0, rank, n, rc;
    float *in, *out;

    if (!count || count > 1u << 30 || iters < 1) {
        fprintf(stderr, "usage: mpi_allreduce BYTES ITERS\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    in = malloc(bytes);
    out = malloc(bytes);
    if (!in || !out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < count; i++)
        in[i] = (float)(rank + 1) * (float)(i % 17);
    rc = run(count, iters, in, out, rank, n);
    if (rc)
        fprintf(stderr, "mpi_allreduce: rank %d has a wrong sum\n", rank);
    free(in);
    free(out);
    MPI_Finalize();
    return rc;
}
