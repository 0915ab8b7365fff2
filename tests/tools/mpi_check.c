/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of an MPI whose results are known: allreduce, alltoall and allgather of 4 bytes to a
 * few megabytes, every element of every rank checked. Rank 0 prints a line per size and collective;
 * the exit code is 1 when any element of any rank was wrong.
 *
 *   mpi_check [MAX_BYTES [ITERATIONS]]     MAX_BYTES: of a rank's buffer, default 4 MiB
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
    int rank, ranks;
    uint32_t *in, *out;
};

/* Value of element i that rank `from` has for rank `to`; all differ. */
static uint32_t value(int from, int to, int i, int turn)
{
    return (uint32_t)from * 2654435761u + (uint32_t)to * 40503u + (uint32_t)i * 69069u +
           (uint32_t)turn;
}

/* Each takes n elements in all, runs once and returns the number of wrong elements. */

static long allreduce(const struct job *j, int n, int turn)
{
    long wrong = 0;

    for (int i = 0; i < n; i++)
        j->in[i] = value(j->rank, 0, i, turn);
    MPI_Allreduce(j->in, j->out, n, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        uint32_t sum = 0;

        for (int r = 0; r < j->ranks; r++)
            sum += value(r, 0, i, turn);
        wrong += j->out[i] != sum;
    }
    return wrong;
}

static long alltoall(const struct job *j, int n, int turn)
{
    int each = n / j->ranks;
    long wrong = 0;

    for (int i = 0; i < each * j->ranks; i++)
        j->in[i] = value(j->rank, i / each, i % each, turn);
    MPI_Alltoall(j->in, each, MPI_UINT32_T, j->out, each, MPI_UINT32_T, MPI_COMM_WORLD);
    for (int i = 0; i < each * j->ranks; i++)
        wrong += j->out[i] != value(i / each, j->rank, i % each, turn);
    return wrong;
}

static long allgather(const struct job *j, int n, int turn)
{
    int each = n / j->ranks;
    long wrong = 0;

    for (int i = 0; i < each; i++)
        j->in[i] = value(j->rank, 0, i, turn);
    MPI_Allgather(j->in, each, MPI_UINT32_T, j->out, each, MPI_UINT32_T, MPI_COMM_WORLD);
    for (int i = 0; i < each * j->ranks; i++)
        wrong += j->out[i] != value(i / each, 0, i % each, turn);
    return wrong;
}

static const struct {
    const char *name;
    long (*run)(const struct job *j, int n, int turn);
    int per_rank; /* the smallest buffer has an element for each rank */
} collectives[] = {
    {"allreduce", allreduce, 0}, {"alltoall", alltoall, 1}, {"allgather", allgather, 1}};

static long check(const struct job *j, unsigned c, int n, int turns)
{
    long mine = 0, all = 0;
    double t0;

    MPI_Barrier(MPI_COMM_WORLD);
    t0 = MPI_Wtime();
    for (int t = 0; t < turns; t++)
        mine += collectives[c].run(j, n, t);
    t0 = MPI_Wtime() - t0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (!j->rank)
        printf("%-10s %9d bytes %12.1f us %s %ld wrong\n", collectives[c].name, n * 4,
               t0 * 1e6 / turns, all ? "FAILED" : "ok", all);
    return all ? all : mine; /* the reduction of the errors may itself be wrong */
}

int main(int argc, char **argv)
{
    int max = argc > 1 ? atoi(argv[1]) : 4 << 20, turns = argc > 2 ? atoi(argv[2]) : 3;
    struct job j = {0};
    long wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
    if (max < 4 * j.ranks || turns < 1) {
        if (!j.rank)
            fprintf(stderr,
                    "mpi_check: expected a size of %d bytes or more and a number of turns\n",
                    4 * j.ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    j.in = malloc((size_t)max);
    j.out = malloc((size_t)max);
    if (!j.in || !j.out)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (unsigned c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++)
        for (int n = collectives[c].per_rank ? j.ranks : 1; n <= max / 4; n *= 16)
            wrong += check(&j, c, n, turns);
    if (!j.rank)
        printf("mpi_check: %d ranks, %ld wrong\n", j.ranks, wrong);
    free(j.in);
    free(j.out);
    MPI_Finalize();
    return wrong != 0;
}
