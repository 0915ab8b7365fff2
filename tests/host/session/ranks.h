/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks of the public interface: threads of this process while they meet, which is a host of a fabric that
 * runs in another thread. Once they have met, the test drives both.
 */
#ifndef TRIB_TESTS_HOST_SESSION_RANKS_H
#define TRIB_TESTS_HOST_SESSION_RANKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/session/comm_priv.h"
#include "io/loop.h"
#include "io/port/port.h"
#include "machine/page_server.h"
#include "roce/frame.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 2

/* Runs the fabric, in a thread, until stop. */
static struct {
    struct rundir rd;
    struct page_server *pages;
    struct fabric *fab;
    struct loop *loop;
    pthread_t thread;
    volatile sig_atomic_t stop;
    char dir[64], file[80];
} net;

static void ready(void *ctx)
{
    (void)ctx;
}

static void *run_loop(void *arg)
{
    (void)arg;
    loop_run(net.loop, &net.stop, ready, NULL);
    return NULL;
}

static int fabric_start(void **state)
{
    static const char conf[] = "name = \"ranks\"; dilation = 100; mtu = 1024;\n"
                               "single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; "
                               "latency = \"300ns\"; }; };\n"
                               "reduce = { groups = 4; slots = 16; window = 16; };\n";
    struct fab_errors errs;
    struct page_server_cfg pc = {.name = "test", .dilation = 100};
    struct loop_cfg lc = {.rd = &net.rd};
    FILE *f;

    (void)state;
    snprintf(net.dir, sizeof(net.dir), "/tmp/ranks.XXXXXX"); /* a short path */
    if (!mkdtemp(net.dir))
        return -1;
    snprintf(net.file, sizeof(net.file), "%s.conf", net.dir);
    f = fopen(net.file, "w");
    if (!f || fputs(conf, f) < 0 || fclose(f))
        return -1;
    net.fab = fabric_load(net.file, &errs);
    if (!net.fab || rundir_open(&net.rd, net.dir, NULL, true) || rundir_install(&net.rd, net.fab) ||
        io_eal_init("test", NULL, 128, NULL, 0))
        return -1;
    pc.dir = net.rd.path;
    pc.fab = net.fab;
    if (page_server_start(&net.pages, &net.rd.sh, &pc))
        return -1;
    lc.fab = net.fab;
    lc.pool = frame_pool_create("ranks", 8191, 0);
    if (!lc.pool || loop_create(&net.loop, &lc))
        return -1;
    setenv("TRIB_RUN", net.dir, 1);
    setenv("TRIB_HOST", "h1", 1);
    return pthread_create(&net.thread, NULL, run_loop, NULL);
}

static int fabric_stop(void **state)
{
    (void)state;
    net.stop = 1;
    pthread_join(net.thread, NULL);
    loop_destroy(net.loop);
    page_server_stop(net.pages);
    rundir_remove(&net.rd);
    unlink(net.file);
    rundir_close(&net.rd);
    fabric_free(net.fab);
    return 0;
}

/* ---- ranks ---- */

static struct rank {
    struct trib_oob oob;
    const char *algo; /* of its options; NULL: it has none */
    int calls_left;   /* this call out of band, and those after it, fail; negative: none */
    bool no_place;    /* for the communicator */
    struct trib_comm *comm;
    int rc;
    char err[TRIB_TEXT];
    pthread_t thread;
} rank[RANKS];

/* Where they meet: a call moves nothing before both have come. */
static pthread_barrier_t both;
static uint8_t board[RANKS][512];

static int gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    struct rank *r = ctx;

    memcpy(board[r->oob.rank], mine, bytes);
    pthread_barrier_wait(&both);
    for (unsigned i = 0; i < RANKS && r->oob.rank == root; i++)
        memcpy((uint8_t *)all + i * bytes, board[i], bytes);
    pthread_barrier_wait(&both);
    return r->calls_left >= 0 && r->calls_left-- == 0 ? -1 : 0;
}

static int bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct rank *r = ctx;

    if (r->oob.rank == root)
        memcpy(board[0], buf, bytes);
    pthread_barrier_wait(&both);
    memcpy(buf, board[0], bytes);
    pthread_barrier_wait(&both);
    return r->calls_left >= 0 && r->calls_left-- == 0 ? -1 : 0;
}

static int barrier(void *ctx)
{
    (void)ctx;
    return 0;
}

static void *create(void *ctx)
{
    struct rank *r = ctx;
    struct trib_comm_options o = {.algo = r->algo};

    r->rc = trib_comm_create(r->no_place ? NULL : &r->comm, &r->oob, r->algo ? &o : NULL, r->err);
    return NULL;
}

static void *destroy(void *ctx)
{
    trib_comm_destroy(((struct rank *)ctx)->comm);
    return NULL;
}

static void at_both(void *(*what)(void *))
{
    for (unsigned r = 0; r < RANKS; r++)
        assert_int_equal(pthread_create(&rank[r].thread, NULL, what, &rank[r]), 0);
    for (unsigned r = 0; r < RANKS; r++)
        pthread_join(rank[r].thread, NULL);
}

static void ranks_init(const char *algo)
{
    for (uint32_t r = 0; r < RANKS; r++)
        rank[r] = (struct rank){
            .oob = {&rank[r], r, RANKS, bcast, gather, barrier}, .algo = algo, .calls_left = -1};
    pthread_barrier_init(&both, NULL, RANKS);
}

/* They try to meet; where they have, rank[].comm is set. */
static void ranks_meet(void)
{
    at_both(create);
    pthread_barrier_destroy(&both);
}

static void ranks_open(const char *algo)
{
    ranks_init(algo);
    ranks_meet();
    for (unsigned r = 0; r < RANKS; r++)
        if (rank[r].rc)
            fail_msg("rank %u: %s", r, rank[r].err);
}

static void ranks_close(void)
{
    at_both(destroy);
}

#endif
