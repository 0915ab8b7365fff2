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
#include "tests/host/live_fabric.h"

#include <errno.h>
#include <string.h>

#define RANKS 2

static int fabric_start(void **state)
{
    (void)state;
    return live_fabric_start("name = \"ranks\"; dilation = 100; mtu = 1024;\n"
                             "single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; "
                             "latency = \"300ns\"; }; };\n"
                             "reduce = { groups = 4; slots = 16; window = 16; };\n",
                             100);
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
