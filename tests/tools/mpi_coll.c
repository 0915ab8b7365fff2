/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions and moves of MPI_COMM_WORLD, of halves of it and of a copy, in place and not, of types
 * with gaps, and of types and reductions that no switch has; every element checked. With "die" rank 1
 * ends itself in the middle; with "loop SECONDS" reductions go on for that long, and nothing else.
 */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT 3001
#define FEW   100 /* UCX registers more than that, for writing, too */

static int rank, ranks;
static long wrong;

static void expect(double found, double want)
{
    wrong += found != want;
}

static double sum(int i)
{
    return ranks * (ranks + 1) / 2.0 + (double)ranks * (i % 7);
}

static void reductions(MPI_Comm comm)
{
    int *in = calloc((size_t)COUNT * (size_t)ranks, sizeof(int));
    int *out = calloc((size_t)COUNT * (size_t)ranks, sizeof(int)), counts[64];

    for (int i = 0; i < COUNT * ranks; i++)
        in[i] = rank + 1 + i % 7;
    MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < COUNT; i++)
        expect(out[i], sum(i));
    memcpy(out, in, COUNT * sizeof(int));
    MPI_Allreduce(MPI_IN_PLACE, out, COUNT, MPI_INT, MPI_MAX, comm);
    for (int i = 0; i < COUNT; i++)
        expect(out[i], ranks + i % 7);
    MPI_Reduce(in, out, COUNT, MPI_INT, MPI_SUM, ranks - 1, comm);
    for (int i = 0; rank == ranks - 1 && i < COUNT; i++)
        expect(out[i], sum(i));
    MPI_Reduce(rank ? in : MPI_IN_PLACE, rank ? NULL : in, COUNT, MPI_INT, MPI_SUM, 0, comm);
    for (int i = 0; i < COUNT; i++) {
        expect(in[i], rank ? rank + 1 + i % 7 : sum(i));
        in[i] = rank + 1 + i % 7;
    }
    MPI_Reduce_scatter_block(in, out, COUNT, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < COUNT; i++)
        expect(out[i], sum(rank * COUNT + i));
    for (int r = 0; r < ranks; r++)
        counts[r] = COUNT;
    for (int equal = 0; equal < 2; equal++) { /* the result comes first, the rest is as it was */
        memcpy(out, in, sizeof(int) * COUNT * (size_t)ranks);
        if (equal)
            MPI_Reduce_scatter(MPI_IN_PLACE, out, counts, MPI_INT, MPI_SUM, comm);
        else
            MPI_Reduce_scatter_block(MPI_IN_PLACE, out, COUNT, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < COUNT * ranks; i++)
            expect(out[i], i < COUNT ? sum(rank * COUNT + i) : in[i]);
    }
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < COUNT; i++)
        expect(out[i], sum(rank * COUNT + i));
    counts[0] -= 5; /* blocks of different lengths */
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < counts[rank]; i++)
        expect(out[i], sum((rank ? rank * COUNT - 5 : 0) + i));
    free(in);
    free(out);
}

static void least_of_all(void *in, void *out, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)out)[i] = ((int *)in)[i] < ((int *)out)[i] ? ((int *)in)[i] : ((int *)out)[i];
}

/* What no switch has is last: it is told by name, once. */
static void lacking(MPI_Comm comm)
{
    struct {
        double value;
        int at;
    } pair = {100 - rank, rank}, least = {0, 0};
    int mine = rank + 5, all = 0;
    MPI_Op own;

    MPI_Allreduce(&pair, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    expect(least.at, ranks - 1);
    MPI_Op_create(least_of_all, 1, &own);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, own, comm);
    expect(all, 5);
    MPI_Op_free(&own);
}

/* Values of which a bitwise and is nothing; sums beyond 32767. */
static void truth_and_shorts(MPI_Comm comm)
{
    unsigned short u[99], u_all[99];
    int yes[5] = {rank > 0, 1 << rank, rank == 1, 0, rank % 2}, all[5];
    signed char c = (signed char)(rank ? 2 : 0), c_all = 9;
    _Bool b = rank == 0, b_all = 0;

    for (int i = 0; i < 99; i++)
        u[i] = (unsigned short)(i * 80 + rank * 11); /* Open MPI's own sums saturate */
    MPI_Allreduce(u, u_all, 99, MPI_UNSIGNED_SHORT, MPI_SUM, comm);
    for (int i = 0; i < 99; i++)
        expect(u_all[i], ranks * i * 80 + ranks * (ranks - 1) / 2 * 11);
    MPI_Allreduce(yes, all, 5, MPI_INT, MPI_LAND, comm);
    for (int i = 0; i < 5; i++)
        expect(all[i], i == 1);
    MPI_Allreduce(yes, all, 5, MPI_INT, MPI_LOR, comm);
    for (int i = 0; i < 5; i++)
        expect(all[i], i != 3);
    MPI_Allreduce(yes, all, 5, MPI_INT, MPI_LXOR, comm);
    for (int i = 0; i < 5; i++)
        expect(all[i], (const int[]){ranks - 1, ranks, 1, 0, ranks / 2}[i] % 2);
    MPI_Allreduce(&c, &c_all, 1, MPI_SIGNED_CHAR, MPI_LOR, comm);
    expect(c_all, 1);
    MPI_Allreduce(&b, &b_all, 1, MPI_C_BOOL, MPI_LOR, comm);
    expect(b_all, 1);
}

static void others(MPI_Comm comm)
{
    short s = (short)(rank + 1), s_all = 0;
    int yes = rank > 0, all = 1;
    double d = rank + 0.5, d_all = 0;
    unsigned long bits = 1ul << (rank + 32), bits_all = 0;
    struct {
        int value, at;
    } pair = {100 - rank, rank}, least;
    struct {
        float value;
        int at;
    } tie = {rank ? 2.5f : 1.5f, rank}, first;

    MPI_Allreduce(&s, &s_all, 1, MPI_SHORT, MPI_SUM, comm);
    expect(s_all, ranks * (ranks + 1) / 2);
    MPI_Allreduce(&yes, &all, 1, MPI_INT, MPI_LAND, comm);
    expect(all, 0);
    MPI_Allreduce(&pair, &least, 1, MPI_2INT, MPI_MINLOC, comm);
    expect(least.at, ranks - 1);
    MPI_Allreduce(&tie, &first, 1, MPI_FLOAT_INT, MPI_MAXLOC, comm);
    expect(first.at, 1);
    expect((double)first.value, 2.5);
    truth_and_shorts(comm);
    MPI_Allreduce(&d, &d_all, 1, MPI_DOUBLE, MPI_SUM, comm);
    expect(d_all, ranks * ranks / 2.0);
    MPI_Allreduce(&bits, &bits_all, 1, MPI_UNSIGNED_LONG, MPI_BOR, comm);
    expect((double)bits_all, (double)(((1ul << ranks) - 1) << 32));
    MPI_Allreduce(&d, &d_all, 0, MPI_DOUBLE, MPI_SUM, comm);
    lacking(comm);
    MPI_Barrier(comm);
}

/* Rank 0 has every other element; the others have them without gaps: the same signature. */
static void moves(MPI_Comm comm)
{
    MPI_Datatype gaps;
    int *v = calloc((size_t)COUNT * (size_t)ranks * 2, sizeof(int)), step = rank ? 1 : 2;

    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    for (int i = 0; i < COUNT; i++)
        v[i * step] = rank == 2 % ranks ? i * 3 : -1;
    MPI_Bcast(v, COUNT, rank ? MPI_INT : gaps, 2 % ranks, comm);
    for (int i = 0; i < COUNT; i++)
        expect(v[i * step], i * 3);
    for (int i = 0; i < 5 * ranks; i++)
        v[i * step] = i / 5 == rank ? rank * 10 + i % 5 : -1;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, v, 5, rank ? MPI_INT : gaps, comm);
    for (int i = 0; i < 5 * ranks; i++)
        expect(v[i * step], i / 5 * 10 + i % 5);
    int mine[3] = {rank, rank * 2, 7};
    MPI_Allgather(mine, 3, MPI_INT, v, 3, rank ? MPI_INT : gaps, comm);
    for (int i = 0; i < 3 * ranks; i++)
        expect(v[i * step], i % 3 == 2 ? 7 : i / 3 * (i % 3 + 1));
    MPI_Type_free(&gaps);
    free(v);
}

/* From memory that the program may not write. */
static void constants(MPI_Comm comm)
{
    static const int three[FEW] = {3, 3, 3};
    int out[FEW], *buf = rank ? out : (int *)(uintptr_t)three;

    MPI_Allreduce(three, out, FEW, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < FEW; i++)
        expect(out[i], i < 3 ? 3 * ranks : 0);
    MPI_Bcast(buf, FEW, MPI_INT, 0, comm);
    for (int i = 0; i < FEW; i++)
        expect(buf[i], i < 3 ? 3 : 0);
}

static void all_of(MPI_Comm comm)
{
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    reductions(comm);
    others(comm);
    moves(comm);
    constants(comm);
}

static void loop(int seconds)
{
    time_t end = time(NULL) + seconds;

    for (int i = 0, on = 1; on; i++) {
        reductions(MPI_COMM_WORLD);
        on = time(NULL) < end;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (i == 1 && !rank) {
            printf("looping\n");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Comm half, copy;
    long total = 0;
    int me;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    all_of(MPI_COMM_WORLD);
    if (argc > 2)
        loop(atoi(argv[2]));
    for (int i = 0; argc == 2 && i < 1000; i++) {
        if (i == 3 && me == 1)
            raise(SIGKILL);
        reductions(MPI_COMM_WORLD);
    }
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half);
    all_of(half);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    all_of(copy);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    MPI_Reduce(&wrong, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!me)
        printf("mpi_coll: %ld wrong\n", total);
    MPI_Finalize();
    return wrong != 0;
}
