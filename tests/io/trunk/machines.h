/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three machines of one conf in one process, on a clock of the test's own. What their trunks send passes
 * through the test, which keeps it. A program has this once.
 */
#ifndef TRIB_TESTS_IO_TRUNK_MACHINES_H
#define TRIB_TESTS_IO_TRUNK_MACHINES_H

#include "machine/page_server.h"
#include "io/trunk/trunk_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS       1000000ll
#define S        (1000 * MS)
#define MACHINES 3u
#define KEPT     40000u

int clock_gettime(clockid_t id, struct timespec *ts);

static const char conf[] =
    "name = \"trunk\"; nodes = ( { name = (\"h0\", \"h1\", \"h2\"); kind = \"host\"; },"
    " { name = (\"s0\", \"s1\", \"s2\"); kind = \"switch\"; } );"
    "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
    "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; }, { a = \"h2\"; b = \"s2\"; "
    "},"
    " { a = \"s0\"; b = \"s1\"; }, { a = \"s1\"; b = \"s2\"; }, { a = \"s2\"; b = \"s0\"; } );"
    "machines = ( { name = \"m0\"; address = \"127.0.0.1\"; nodes = ( \"s0\" ); },"
    " { name = \"m1\"; address = \"127.0.0.2\"; nodes = ( \"s1\" ); },"
    " { name = \"m2\"; address = \"127.0.0.3\"; nodes = ( \"s2\" ); } );"
    "trunk_key = \"a secret that the lab shares\";";

struct datagram {
    uint8_t to;
    uint16_t bytes;
    uint8_t type;
    uint8_t m[400];
};

static struct {
    struct fabric *fab;
    struct rundir rd;
    char dir[64];
    struct page_server *pages;
    struct trunk *t[MACHINES]; /* NULL: it is dead */
    int wire[MACHINES];        /* what is sent to a machine arrives here */
    struct sockaddr_in at[MACHINES];
    bool cut; /* nothing arrives */
    struct datagram kept[KEPT];
    unsigned n_kept;
} w;

static int64_t ahead_ns;
static int64_t still_ns; /* CLOCK_MONOTONIC stands here; 0: it runs */

/* The clock of all: as the system's, and ahead of it by what the test has let pass. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
    bool still = still_ns && id == CLOCK_MONOTONIC;
    long rc = still ? 0 : syscall(SYS_clock_gettime, id, ts);
    int64_t ns = still ? still_ns : ts->tv_nsec + ahead_ns;

    if (still)
        ts->tv_sec = 0;
    ts->tv_sec += ns / S;
    ts->tv_nsec = ns % S;
    return (int)rc;
}

/* ---- machines ---- */

static void machine_start(unsigned i)
{
    struct trunk *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    t->fab = w.fab;
    t->cfg = (struct trunk_cfg){.fab = w.fab, .rd = &w.rd, .machine = i, .dilation = 1};
    t->me = i;
    t->n = MACHINES;
    t->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(t->fd >= 0);
    pthread_mutex_init(&t->lock, NULL);
    assert_int_equal(peers_create(t), 0);
    assert_int_equal(ends_create(t), 0);
    assert_int_equal(cuts_create(t), 0);
    assert_int_equal(orders_create(t), 0);
    assert_int_equal(counts_create(t), 0);
    t->began_ns = clock_mono_ns();
    for (unsigned p = 0; p < MACHINES; p++)
        t->peer[p].at = w.at[p];
    t->sh = i ? NULL : w.rd.sh; /* one process here has the pages of one machine */
    t->dilation = 100;          /* of the page server's clock */
    w.t[i] = t;
}

static void machine_die(unsigned i)
{
    struct trunk *t = w.t[i];

    if (!t)
        return;
    w.t[i] = NULL;
    counts_destroy(t);
    ends_destroy(t);
    peers_destroy(t);
    close(t->fd);
    pthread_mutex_destroy(&t->lock);
    free(t->cuts);
    free(t->cuts_sent);
    free(t->terms);
    free(t);
}

static bool hear(const struct datagram *d)
{
    return w.t[d->to] && peers_input(w.t[d->to], d->m, d->bytes, clock_mono_ns());
}

static bool arrive(unsigned to)
{
    struct datagram d = {.to = (uint8_t)to};
    ssize_t n = recv(w.wire[to], d.m, sizeof(d.m), MSG_DONTWAIT);

    if (n < 0)
        return false;
    assert_true(n >= (ssize_t)sizeof(struct trunk_header) && w.n_kept < KEPT);
    d.bytes = (uint16_t)n;
    d.type = ((struct trunk_header *)d.m)->type;
    w.kept[w.n_kept++] = d;
    if (!w.cut)
        hear(&d);
    return true;
}

static void deliver(void)
{
    for (bool any = true; any;) {
        any = false;
        for (unsigned i = 0; i < 3; i++)
            any |= arrive(i);
    }
}

static void pass(int64_t ns)
{
    for (int64_t until = clock_mono_ns() + ns; clock_mono_ns() < until; ahead_ns += 10 * MS) {
        for (unsigned i = 0; i < MACHINES; i++)
            if (w.t[i])
                peers_tick(w.t[i], clock_mono_ns());
        deliver();
    }
}

static bool there(unsigned here, unsigned who)
{
    return peer_alive(&w.t[here]->peer[who]);
}

/* ---- set-up ---- */

static int setup(void **state)
{
    (void)state;
    ahead_ns = still_ns = 0;
    snprintf(w.dir, sizeof(w.dir), "/tmp/test_trunk.XXXXXX");
    w.fab = fabric_load_string(conf, "trunk.conf", NULL);
    assert_non_null(w.fab);
    assert_int_equal(w.fab->n_links, 6);
    assert_non_null(mkdtemp(w.dir));
    assert_int_equal(rundir_open(&w.rd, w.dir, w.fab->name, true), 0);
    assert_int_equal(page_server_start(&w.pages, &w.rd.sh,
                                       &(struct page_server_cfg){.dir = w.rd.path,
                                                                 .name = FAB_TRUNK,
                                                                 .proc = w.fab->n_procs,
                                                                 .fab = w.fab,
                                                                 .dilation = 100}),
                     0);
    for (unsigned i = 0; i < MACHINES; i++) {
        socklen_t n = sizeof(w.at[i]);

        w.wire[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        w.at[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        assert_int_equal(bind(w.wire[i], (struct sockaddr *)&w.at[i], n), 0);
        assert_int_equal(getsockname(w.wire[i], (struct sockaddr *)&w.at[i], &n), 0);
    }
    w.n_kept = 0;
    w.cut = false;
    for (unsigned i = 0; i < MACHINES; i++)
        machine_start(i);
    pass(200 * MS);
    for (unsigned i = 0; i < MACHINES; i++)
        assert_true(there(i, (i + 1) % MACHINES) && there(i, (i + 2) % MACHINES));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MACHINES; i++) {
        machine_die(i);
        close(w.wire[i]);
    }
    page_server_stop(w.pages);
    rundir_remove(&w.rd);
    rundir_close(&w.rd);
    rmdir(w.dir);
    fabric_free(w.fab);
    return 0;
}

#endif
