/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs calls from any thread: threads that create, connect, use and destroy objects of one HCA,
 * and threads that poll the completion queues that all of them share. The driver is a lock and a
 * wire; a thread that finds no completion moves frames, and advances time where no frame moves.
 * `make tsan` runs it under the thread sanitizer.
 */
#include "tests/host/hca/pair.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MAKERS  4
#define POLLERS 2
#define MSG     3000u
#define BIG     (256u << 10)
/* Two pages of each maker's own. */
#define AREA(t) ((t)*2u * MSG)

static struct wire {
    struct pair p;
    pthread_mutex_t lock;
    struct ibv_cq *cq[2];       /* of all makers, one a side */
    atomic_uint done[MAKERS];   /* completions, whatever their status */
    atomic_uint denied[MAKERS]; /* with an error */
    atomic_bool stop;
    atomic_uint events;
    const char *wrong; /* the first failure of any thread */
} wire = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            wire.wrong = #cond;                                                                    \
            atomic_store(&wire.stop, true);                                                        \
            return NULL;                                                                           \
        }                                                                                          \
    } while (0)

/* ---- the driver ---- */

static void drv_lock(void *ctx)
{
    pthread_mutex_lock(&((struct wire *)ctx)->lock);
}

static void drv_unlock(void *ctx)
{
    pthread_mutex_unlock(&((struct wire *)ctx)->lock);
}

static void drv_idle(void *ctx)
{
    struct wire *w = ctx;
    int64_t next = PS_NEVER;

    drv_lock(w);
    if (!pair_round(&w->p)) {
        for (unsigned i = 0; i < 2; i++)
            next = RTE_MIN(next, w->p.s[i].ep.next(w->p.s[i].ep.ctx));
        if (next != PS_NEVER)
            w->p.now_ps = RTE_MAX(next, w->p.now_ps + 1);
    }
    drv_unlock(w);
    sched_yield();
}

/* ---- threads ---- */

/* Takes completions and events of all threads. */
static void *poller(void *arg)
{
    struct ibv_async_event ev;
    struct ibv_wc wc[4];

    (void)arg;
    while (!atomic_load(&wire.stop))
        for (unsigned i = 0; i < 2; i++) {
            int n = ibv_poll_cq(wire.cq[i], 4, wc);

            CHECK(n >= 0);
            for (int k = 0; k < n; k++) {
                if (wc[k].status != IBV_WC_SUCCESS)
                    atomic_fetch_add(&wire.denied[wc[k].wr_id], 1);
                atomic_fetch_add(&wire.done[wc[k].wr_id], 1);
            }
            while (!ibv_get_async_event(wire.p.s[i].ctx, &ev)) {
                atomic_fetch_add(&wire.events, 1);
                sched_yield();
                ibv_ack_async_event(&ev);
            }
        }
    return NULL;
}

static bool wait_done(unsigned t, unsigned n)
{
    while (atomic_load(&wire.done[t]) < n && !atomic_load(&wire.stop))
        sched_yield();
    return atomic_load(&wire.done[t]) == n;
}

static int connect_one(struct ibv_qp *qp, uint32_t ip, uint32_t peer)
{
    struct ibv_qp_attr a = rc_attr(ip, peer);
    int rc;

    a.qp_state = IBV_QPS_INIT;
    rc = ibv_modify_qp(qp, &a, MASK_INIT);
    a.qp_state = IBV_QPS_RTR;
    rc = rc ? rc : ibv_modify_qp(qp, &a, MASK_RTR);
    a.qp_state = IBV_QPS_RTS;
    return rc ? rc : ibv_modify_qp(qp, &a, MASK_RTS);
}

/* Sends a message over new queue pairs and destroys them, and creates and destroys other objects
 * meanwhile. */
static const char *message(unsigned t, unsigned round)
{
    struct side *sa = &wire.p.s[0], *sb = &wire.p.s[1];
    struct ibv_sge s = sge_at(sa, AREA(t), MSG), r = sge_at(sb, AREA(t), MSG);
    struct ibv_send_wr wr = {.wr_id = t,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp *a = make_qp_on(sa, IBV_QPT_RC, wire.cq[0], wire.cq[0], NULL),
                  *b = make_qp_on(sb, IBV_QPT_RC, wire.cq[1], wire.cq[1], NULL);
    struct ibv_ah_attr at = ah_to(IP_B);
    struct ibv_ah *ah = ibv_create_ah(sa->pd, &at);
    struct ibv_pd *pd = ibv_alloc_pd(sa->ctx);
    struct ibv_comp_channel *ch = ibv_create_comp_channel(sa->ctx);
    struct ibv_cq *cq = ibv_create_cq(sa->ctx, 16, NULL, ch, 0);

    atomic_store(&wire.done[t], 0);
    atomic_store(&wire.denied[t], 0);
    if (!a || !b || !ah || !pd || !ch || !cq)
        return "objects are made";
    memset(sa->buf + AREA(t), (int)(round + t), MSG);
    if (connect_one(a, IP_B, b->qp_num) || connect_one(b, IP_A, a->qp_num))
        return "queue pairs connect";
    if (post_recv(b, t, &r, 1) || post_send(a, wr))
        return "requests are posted";
    if (!wait_done(t, 2) || atomic_load(&wire.denied[t]))
        return "a message arrives once";
    if (memcmp(sa->buf + AREA(t), sb->buf + AREA(t), MSG))
        return "a message arrives unchanged";
    if (ibv_destroy_ah(ah) || ibv_destroy_cq(cq) || ibv_destroy_comp_channel(ch) ||
        ibv_dealloc_pd(pd) || ibv_destroy_qp(a) || ibv_destroy_qp(b))
        return "objects go";
    return NULL;
}

/* A region is deregistered while a peer writes to it: no byte of it changes after
 * dereg_mr returns. */
static const char *taken_away(unsigned t)
{
    struct side *sa = &wire.p.s[0], *sb = &wire.p.s[1];
    uint8_t *mem = calloc(2, BIG), *seen = mem + BIG;
    struct ibv_mr *mr = ibv_reg_mr(sb->pd, mem, BIG, 3);
    struct ibv_sge s = sge_at(sa, BYTES - BIG, BIG);
    struct ibv_send_wr wr = {.wr_id = t,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)mem, mr ? mr->rkey : 0}};
    struct ibv_qp *a = make_qp_on(sa, IBV_QPT_RC, wire.cq[0], wire.cq[0], NULL),
                  *b = make_qp_on(sb, IBV_QPT_RC, wire.cq[1], wire.cq[1], NULL);
    const char *why = NULL;

    atomic_store(&wire.done[t], 0);
    atomic_store(&wire.denied[t], 0);
    if (!mr || !a || !b || connect_one(a, IP_B, b->qp_num) || connect_one(b, IP_A, a->qp_num) ||
        post_send(a, wr))
        return "a write begins";
    for (unsigned i = 0; i < t; i++)
        sched_yield();
    if (ibv_dereg_mr(mr))
        return "a region in use can be deregistered";
    memcpy(seen, mem, BIG);
    if (!wait_done(t, 1))
        return "a write ends";
    if (memcmp(seen, mem, BIG))
        why = "nothing is written after dereg_mr";
    free(mem);
    if (ibv_destroy_qp(a) || ibv_destroy_qp(b))
        return "queue pairs in error go";
    return why;
}

static void *maker(void *arg)
{
    unsigned t = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < 600 && !atomic_load(&wire.stop); i++) {
        const char *why = message(t, i);

        if (!why)
            why = taken_away(t);
        if (why && !atomic_exchange(&wire.stop, true))
            wire.wrong = why;
    }
    return NULL;
}

static void every_verb_from_any_thread(void **state)
{
    const struct hca_driver drv = {
        .lock = drv_lock, .unlock = drv_unlock, .idle = drv_idle, .ctx = &wire};
    pthread_t make[MAKERS], poll[POLLERS];

    (void)state;
    pair_open_driven(&wire.p, &drv);
    for (unsigned i = 0; i < 2; i++) {
        wire.cq[i] = ibv_create_cq(wire.p.s[i].ctx, 1024, NULL, NULL, 0);
        assert_non_null(wire.cq[i]);
        assert_int_equal(fcntl(wire.p.s[i].ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
    }
    memset(wire.p.s[0].buf + BYTES - BIG, 0x77, BIG);
    for (uintptr_t i = 0; i < POLLERS; i++)
        assert_int_equal(pthread_create(&poll[i], NULL, poller, NULL), 0);
    for (uintptr_t i = 0; i < MAKERS; i++)
        assert_int_equal(pthread_create(&make[i], NULL, maker, (void *)i), 0);
    for (unsigned i = 0; i < MAKERS; i++)
        assert_int_equal(pthread_join(make[i], NULL), 0);
    atomic_store(&wire.stop, true);
    for (unsigned i = 0; i < POLLERS; i++)
        assert_int_equal(pthread_join(poll[i], NULL), 0);
    if (wire.wrong)
        fail_msg("%s", wire.wrong);
    print_message("%u asynchronous events\n", atomic_load(&wire.events));
    pair_settle(&wire.p);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ibv_destroy_cq(wire.cq[i]), 0);
    pair_close(&wire.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_verb_from_any_thread)};

    return cmocka_run_group_tests_name("hca/threads", tests, NULL, NULL);
}
