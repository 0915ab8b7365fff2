/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several teams of UCC of all ranks at the same time: all-reduces of each in turn, every element checked.
 *
 *   mpirun -np 8 trib exec @rank -- ucc_teams TEAMS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucc/api/ucc.h>

#define COUNT 4096
#define MOST  16

static int rank, size;

static void must(int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, ucc_status_string((ucc_status_t)status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- out of band: MPI ---- */

static ucc_status_t gather(void *in, void *out, size_t bytes, void *comm, void **req)
{
    static MPI_Request pending[2 * MOST];
    static int at;
    MPI_Request *r = &pending[at++ % (2 * MOST)];

    *req = r;
    return MPI_Iallgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, *(MPI_Comm *)comm, r)
               ? UCC_ERR_NO_MESSAGE
               : UCC_OK;
}

static ucc_status_t test(void *req)
{
    int done = 0;

    MPI_Test(req, &done, MPI_STATUS_IGNORE);
    return done ? UCC_OK : UCC_INPROGRESS;
}

static ucc_status_t end(void *req)
{
    (void)req;
    return UCC_OK;
}

static ucc_oob_coll_t oob(MPI_Comm *comm)
{
    return (ucc_oob_coll_t){.allgather = gather,
                            .req_test = test,
                            .req_free = end,
                            .coll_info = comm,
                            .n_oob_eps = (uint32_t)size,
                            .oob_ep = (uint32_t)rank};
}

/* ---- teams ---- */

static ucc_team_h open_team(ucc_context_h ctx, MPI_Comm *comm)
{
    ucc_team_params_t p = {.mask = UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE |
                                   UCC_TEAM_PARAM_FIELD_OOB,
                           .ep = (uint64_t)rank,
                           .ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG,
                           .oob = oob(comm)};
    ucc_team_h team = NULL;
    ucc_status_t st;

    must(ucc_team_create_post(&ctx, 1, &p, &team), "team_create");
    while ((st = ucc_team_create_test(team)) == UCC_INPROGRESS)
        ucc_context_progress(ctx);
    must(st, "team_create");
    return team;
}

static long all_reduce(ucc_context_h ctx, ucc_team_h team, int add)
{
    static int in[COUNT], out[COUNT];
    ucc_coll_args_t a = {
        .coll_type = UCC_COLL_TYPE_ALLREDUCE,
        .src.info = {in, COUNT, UCC_DT_INT32, UCC_MEMORY_TYPE_HOST},
        .dst.info = {out, COUNT, UCC_DT_INT32, UCC_MEMORY_TYPE_HOST},
        .op = UCC_OP_SUM,
    };
    ucc_coll_req_h req;
    long wrong = 0;

    for (int i = 0; i < COUNT; i++)
        in[i] = rank + add + i;
    must(ucc_collective_init(&a, &req, team), "collective_init");
    must(ucc_collective_post(req), "collective_post");
    while (ucc_collective_test(req) == UCC_INPROGRESS)
        ucc_context_progress(ctx);
    must(ucc_collective_finalize(req), "collective");
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != size * (size - 1) / 2 + size * (add + i);
    return wrong;
}

int main(int argc, char **argv)
{
    ucc_lib_params_t lp = {.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE,
                           .thread_mode = UCC_THREAD_SINGLE};
    ucc_context_params_t cp = {.mask = UCC_CONTEXT_PARAM_FIELD_OOB};
    int teams = argc == 2 ? atoi(argv[1]) : 0;
    ucc_lib_config_h lib_config;
    ucc_context_config_h config;
    ucc_context_h ctx;
    ucc_team_h team[MOST];
    MPI_Comm comm[MOST], world;
    long wrong = 0, all = 0;
    ucc_lib_h lib;

    if (teams < 1 || teams > MOST)
        return fprintf(stderr, "usage: ucc_teams TEAMS (1 to %d)\n", MOST), 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    must(ucc_lib_config_read(NULL, NULL, &lib_config), "lib_config");
    must(ucc_init(&lp, lib_config, &lib), "init");
    must(ucc_context_config_read(lib, NULL, &config), "context_config");
    cp.oob = oob(&world);
    must(ucc_context_create(lib, &cp, config, &ctx), "context_create");
    for (int t = 0; t < teams; t++) {
        MPI_Comm_dup(world, &comm[t]);
        team[t] = open_team(ctx, &comm[t]);
    }
    for (int round = 0; round < 4; round++)
        for (int t = 0; t < teams; t++)
            wrong += all_reduce(ctx, team[t], t + round);
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, world);
    if (!rank)
        printf("ucc_teams: %d teams of %d ranks, %ld wrong\n", teams, size, all);
    for (int t = 0; t < teams; t++)
        while (ucc_team_destroy(team[t]) == UCC_INPROGRESS)
            ucc_context_progress(ctx);
    ucc_context_destroy(ctx);
    ucc_context_config_release(config);
    ucc_lib_config_release(lib_config);
    ucc_finalize(lib);
    MPI_Finalize();
    return all != 0;
}
