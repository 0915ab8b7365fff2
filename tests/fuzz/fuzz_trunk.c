/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a trunk takes from another machine: what is not made with the key, or names another session, is
 * refused and changes no session; a body that another machine of the lab made, of any bytes, reads and
 * writes within its bounds.
 *
 * Input: records { how, type, n (2 bytes), n bytes }. how % 4: 0, a message of that type of the session,
 * with this body; 1, a datagram of these bytes; 2, a sealed message, whose nonces and number are the first
 * 24 bytes; 3, n ms pass.
 */
#include "machine/page_server.h"
#include "io/trunk/trunk_priv.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/eal.h"

#include <endian.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES 8u /* that wait for their acknowledgement */
#define POOL   2047u

int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char conf[] =
    "name = \"fuzz\"; nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
    " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
    "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
    "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; },"
    " { a = \"s0\"; b = \"s1\"; cables = 2; } );"
    "machines = ( { name = \"m0\"; address = \"127.0.0.1\"; nodes = ( \"s0\" ); },"
    " { name = \"m1\"; address = \"127.0.0.2\"; nodes = ( \"s1\" ); } );"
    "trunk_key = \"a secret that the lab shares\";";

static char dir[] = "/tmp/fuzz_trunk.XXXXXX";
static struct rundir rd;
static struct page_server *pages;
static struct fabric *fab;
static struct trunk t;
static struct trunk_session other; /* at the other machine */
static int64_t now;

static void leave(void)
{
    counts_destroy(&t);
    page_server_stop(pages);
    rundir_remove(&rd);
    rundir_close(&rd);
    rmdir(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    test_eal_init();
    fab = fabric_load_string(conf, "fuzz.conf", NULL);
    check(fab && mkdtemp(dir) && !rundir_open(&rd, dir, fab->name, true), "a run directory");
    check(!page_server_start(&pages, &rd.sh,
                             &(struct page_server_cfg){.dir = rd.path,
                                                       .name = FAB_TRUNK,
                                                       .proc = fab->n_procs,
                                                       .fab = fab,
                                                       .dilation = 1}),
          "pages");
    t.fab = fab;
    t.cfg = (struct trunk_cfg){.fab = fab, .rd = &rd, .dilation = 1};
    t.n = fab->n_machines;
    t.fd = -1; /* nothing is sent */
    t.pool = test_pool(POOL);
    pthread_mutex_init(&t.lock, NULL);
    check(!peers_create(&t) && !ends_create(&t) && !cuts_create(&t) && !orders_create(&t) &&
              !counts_create(&t),
          "a trunk");
    t.sh = rd.sh;
    atexit(leave);
    return 0;
}

static bool give(uint8_t *m, size_t bytes, unsigned type, struct trunk_header h)
{
    h.magic = htobe32(TRUNK_MAGIC);
    h.version = TRUNK_VERSION;
    h.type = (uint8_t)type;
    h.from = 1;
    h.to = 0;
    memcpy(m, &h, sizeof(h));
    check(trunk_seal_put(t.seal, m, bytes), "a MAC");
    return peers_input(&t, m, bytes, now);
}

/* Frames in flight, and ends that take some, as if their switch processes were there. */
static void ends_begin(void)
{
    for (unsigned i = 0; i < t.n_ends; i++) {
        t.end[i].up = true;
        flow_out_init(&t.end[i].out);
        for (unsigned k = 0; k < FRAMES; k++) {
            struct rte_mbuf *f = frame_alloc(t.pool);

            check(f && rte_pktmbuf_append(f, 100), "a frame");
            flow_out_put(&t.end[i].out, f, now);
        }
    }
}

static void ends_over(void)
{
    for (unsigned i = 0; i < t.n_ends; i++) {
        struct trunk_end *e = &t.end[i];
        struct rte_mbuf *m;

        while ((m = flow_in_drop(&e->in)))
            rte_pktmbuf_free(m);
        while ((m = flow_out_drop(&e->out)))
            rte_pktmbuf_free(m);
        for (; e->wait_n; e->wait_n--) {
            rte_pktmbuf_free(e->wait[e->wait_head]);
            e->wait_head = (uint16_t)((e->wait_head + 1) % TRUNK_BACKLOG);
        }
    }
    check(rte_mempool_avail_count(t.pool) == POOL, "a frame is lost");
}

static void open_session(void)
{
    struct trunk_header h = {.type = TRUNK_CHALLENGE};
    uint8_t m[sizeof(h)];

    session_end(&t.peer[1].session);
    session_init(&other, now);
    session_stamp(&other, &h, t.peer[1].session.offer[0], 0);
    check(give(m, sizeof(m), TRUNK_CHALLENGE, h), "a session");
    other.mine = t.peer[1].session.theirs;
    other.theirs = t.peer[1].session.mine;
}

static void record(unsigned how, unsigned type, const uint8_t *data, size_t n)
{
    const struct trunk_session was = t.peer[1].session;
    uint8_t m[TRUNK_MAX];
    struct trunk_header h = {.type = (uint8_t)type};

    t.peer[1].far = t.peer[1].other_conf = false; /* its clock is as ours */
    t.peer[1].state.sent_ns += !t.peer[1].state.sent_ns;
    if (how == 3) {
        now += (int64_t)n * 1000000;
        peers_tick(&t, now);
    } else if (how == 1) {
        check(!peers_input(&t, data, n, now), "a datagram without a MAC is taken");
    } else if (how == 2 && n >= 24) {
        memcpy(&h.session, data, 24);
        memcpy(m + sizeof(h), data + 24, n - 24);
        give(m, sizeof(h) + n - 24, type, h);
        check(was.mine == t.peer[1].session.mine && was.theirs == t.peer[1].session.theirs,
              "a message of another session ends this one");
    } else if (how == 0 && session_open(&t.peer[1].session) && type != TRUNK_HELLO &&
               type != TRUNK_CHALLENGE) {
        session_stamp(&other, &h, 0, 0);
        memcpy(m + sizeof(h), data, n);
        give(m, sizeof(h) + n, type, h);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    now = now ? now + 10000000000 : clock_mono_ns();
    session_tick(&t.peer[1].session, now);
    open_session();
    ends_begin();
    while (size >= 4) {
        size_t n = data[2] | (size_t)data[3] << 8;

        n = n < size - 4 ? n : size - 4;
        n = n < TRUNK_MAX - sizeof(struct trunk_header) ? n
                                                        : TRUNK_MAX - sizeof(struct trunk_header);
        record(data[0] % 4, data[1] % (TRUNK_TYPES + 1), data + 4, n);
        data += 4 + n, size -= 4 + n;
    }
    ends_over();
    return 0;
}
