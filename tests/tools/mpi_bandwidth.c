/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bandwidth loop as MPI benchmarks have it: rank 0 sends WINDOW messages of BYTES, rank 1 receives
 * them and answers, ITERS times after a warm-up. Prints what MPI_Wtime makes of it, in MB/s.
 * usage: mpi_bandwidth BYTES WINDOW ITERS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_MAX 64

static int rank;

static int window(char *const *bufs, int bytes, int n)
{
    MPI_Request reqs[WINDOW_MAX];
    char answer = 0;

    for (int i = 0; i < n; i++)
        if (!rank)
            MPI_Isend(bufs[i], bytes, MPI_CHAR, 1, 7, MPI_COMM_WORLD, &reqs[i]);
        else
            MPI_Irecv(bufs[i], bytes, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &reqs[i]);
    MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
    if (rank) {
        MPI_Send(&answer, 1, MPI_CHAR, 0, 8, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            if (bufs[i][0] != i || bufs[i][bytes - 1] != i)
                return 1;
    } else {
        MPI_Recv(&answer, 1, MPI_CHAR, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int bytes = argc == 4 ? atoi(argv[1]) : 0, n = argc == 4 ? atoi(argv[2]) : 0;
    int iters = argc == 4 ? atoi(argv[3]) : 0, wrong = 0, ranks;
    char *bufs[WINDOW_MAX];
    double begin;

    if (bytes < 1 || n < 1 || n > WINDOW_MAX || iters < 1) {
        fprintf(stderr, "usage: mpi_bandwidth BYTES WINDOW ITERS\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < n; i++) {
        bufs[i] = malloc((size_t)bytes);
        if (!bufs[i] || ranks != 2)
            MPI_Abort(MPI_COMM_WORLD, 1);
        memset(bufs[i], rank ? 0 : i, (size_t)bytes);
    }
    wrong |= window(bufs, bytes, n);
    begin = MPI_Wtime();
    for (int i = 0; i < iters; i++)
        wrong |= window(bufs, bytes, n);
    if (!rank)
        printf("%.1f MB/s\n", (double)bytes * n * iters / (MPI_Wtime() - begin) / 1e6);
    if (wrong)
        fprintf(stderr, "mpi_bandwidth: wrong data\n");
    for (int i = 0; i < n; i++)
        free(bufs[i]);
    MPI_Finalize();
    return wrong;
}
