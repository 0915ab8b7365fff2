/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric whose loop runs in a thread of the test; the test is its host h1, as any preloaded
 * program is. A program includes this once, after cmocka.h.
 */
#ifndef TRIB_TESTS_HOST_LIVE_FABRIC_H
#define TRIB_TESTS_HOST_LIVE_FABRIC_H

#include "io/loop.h"
#include "io/port/port.h"
#include "machine/page_server.h"
#include "roce/frame.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* It runs until stop. */
static struct {
    struct rundir rd;
    struct page_server *pages;
    struct fabric *fab;
    struct loop *loop;
    struct rte_mempool *pool;
    pthread_t thread;
    volatile sig_atomic_t stop;
    char dir[64], file[80];
} net;

static void live_fabric_ready(void *ctx)
{
    (void)ctx;
}

static void *live_fabric_run(void *arg)
{
    (void)arg;
    loop_run(net.loop, &net.stop, live_fabric_ready, NULL);
    return NULL;
}

/* The conf's text, and its dilation once more. */
static int live_fabric_start(const char *conf, unsigned dilation)
{
    struct fab_errors errs;
    struct page_server_cfg pc = {.name = "test", .dilation = dilation};
    struct loop_cfg lc = {.rd = &net.rd};
    FILE *f;

    snprintf(net.dir, sizeof(net.dir), "/tmp/live.XXXXXX"); /* a short path */
    if (!mkdtemp(net.dir))
        return -1;
    snprintf(net.file, sizeof(net.file), "%s.conf", net.dir);
    f = fopen(net.file, "w");
    if (!f || fputs(conf, f) < 0 || fclose(f))
        return -1;
    net.fab = fabric_load(net.file, &errs);
    if (!net.fab) {
        fab_errors_print(&errs, stderr);
        return -1;
    }
    if (rundir_open(&net.rd, net.dir, NULL, true) || rundir_install(&net.rd, net.fab) ||
        io_eal_init("test", NULL, 128, NULL, 0))
        return -1;
    pc.dir = net.rd.path;
    pc.fab = net.fab;
    if (page_server_start(&net.pages, &net.rd.sh, &pc))
        return -1;
    net.pool = frame_pool_create("live", 8191, 0);
    lc.fab = net.fab;
    lc.pool = net.pool;
    if (!net.pool || loop_create(&net.loop, &lc))
        return -1;
    setenv("TRIB_RUN", net.dir, 1);
    setenv("TRIB_HOST", "h1", 1);
    return pthread_create(&net.thread, NULL, live_fabric_run, NULL);
}

/* The fabric's end on disk; whether the loop has been stopped is the caller's. */
static void live_fabric_remove(void)
{
    page_server_stop(net.pages);
    rundir_remove(&net.rd);
    unlink(net.file);
    rundir_close(&net.rd);
}

static inline int live_fabric_stop(void **state)
{
    (void)state;
    net.stop = 1;
    pthread_join(net.thread, NULL);
    loop_destroy(net.loop);
    live_fabric_remove();
    fabric_free(net.fab);
    return 0;
}

#endif
