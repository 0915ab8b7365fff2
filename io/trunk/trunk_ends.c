/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links to other machines. Towards the switch process here an end behaves as the process of the far
 * node would (link_io.c): memif, bell and stamps. It is open while the other machine is there and
 * says that its own switch process is, so that either process sees the other's death.
 *
 * A datagram that overtakes another waits until that one arrives, at most HELD_NS; if it does not, it
 * is lost as a frame on a wire is.
 */
#include "io/trunk/trunk_priv.h"

#include "base/assert.h"
#include "roce/frame.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG2_RING 9
#define HELD_NS   2000000

/* ---- bells and stamps: as link_io.c, from the other end ---- */

static _Atomic int64_t *received_stamp(const struct trunk_end *e)
{
    return e->is_a ? &e->page->rung_ns : &e->page->bell.rung_ns;
}

static _Atomic int64_t *sent_stamp(const struct trunk_end *e)
{
    return e->is_a ? &e->page->bell.rung_ns : &e->page->rung_ns;
}

static void ring(struct trunk_end *e)
{
    if (e->page)
        bell_stamp(sent_stamp(e));
    if (e->view)
        loop_bell_ring(e->view->page, e->view->bell, &e->rung);
    e->ring = false;
}

/* ---- to other machines ---- */

static uint64_t since(int64_t now_ns, int64_t waited_ns)
{
    return (uint64_t)(now_ns - (waited_ns > 0 ? waited_ns : 0));
}

/* A datagram for each frame, in one system call. */
static void send_burst(struct trunk *t, struct trunk_end *e, struct rte_mbuf **m, unsigned n,
                       int64_t due_ps)
{
    struct trunk_peer *p = &t->peer[e->peer];
    const size_t before = sizeof(struct trunk_header) + sizeof(struct trunk_frame);
    struct mmsghdr msg[TRUNK_BURST] = {0};
    struct iovec iov[TRUNK_BURST];
    int done;

    for (unsigned i = 0; i < n; i++) {
        struct trunk_frame f = {.link = htobe16(e->link),
                                .n = htobe16(1),
                                .number = htobe32(++e->number),
                                .due_ps = htobe64((uint64_t)due_ps)};
        size_t len = RTE_MIN((size_t)m[i]->pkt_len, TRUNK_MAX - before);

        memcpy(trunk_body(t->out[i]), &f, sizeof(f));
        memcpy(t->out[i] + before, rte_pktmbuf_mtod(m[i], void *), len);
        peers_seal(t, e->peer, TRUNK_FRAME, t->out[i], before + len);
        iov[i] = (struct iovec){t->out[i], before + len};
        msg[i].msg_hdr = (struct msghdr){.msg_name = &p->at,
                                         .msg_namelen = sizeof(p->at),
                                         .msg_iov = &iov[i],
                                         .msg_iovlen = 1};
    }
    rte_pktmbuf_free_bulk(m, n);
    for (unsigned at = 0; at < n; at += (unsigned)done) {
        done = sendmmsg(t->fd, msg + at, n - at, 0);
        if (done > 0) {
            p->sent += (unsigned)done;
            continue;
        }
        p->send_failed++;
        done = 1;
    }
    e->sent += n;
}

unsigned ends_send(struct trunk *t, int64_t now_ns)
{
    unsigned total = 0;

    for (unsigned i = 0; i < t->n_ends; i++) {
        struct trunk_end *e = &t->end[i];
        struct rte_mbuf *m[TRUNK_BURST];
        int64_t waited;
        uint16_t n;

        if (!e->up)
            continue;
        n = io_port_rx(e->rp, 0, m, TRUNK_BURST);
        waited = e->page ? bell_take_stamp(received_stamp(e), now_ns, now_ns - t->looked_ns) : -1;
        if (n)
            send_burst(t, e, m, n,
                       clock_fabric_at(t->sh, (int64_t)since(now_ns, waited)));
        total += n;
    }
    t->looked_ns = now_ns;
    return total;
}

bool ends_pending(const struct trunk *t)
{
    for (unsigned i = 0; i < t->n_ends; i++)
        if (t->end[i].up && io_port_pending(t->end[i].rp, 0))
            return true;
    return false;
}

/* ---- from other machines ---- */

static void drain(struct trunk_end *e)
{
    while (e->wait_n) {
        uint16_t run = RTE_MIN(e->wait_n, (uint16_t)(TRUNK_BACKLOG - e->wait_head)), k;

        k = io_port_tx(e->rp, 0, e->wait + e->wait_head, run);
        e->wait_head = (uint16_t)((e->wait_head + k) % TRUNK_BACKLOG);
        e->wait_n = (uint16_t)(e->wait_n - k);
        e->ring |= k > 0;
        if (k < run)
            return;
    }
}

static void hand_over(struct trunk_end *e, struct rte_mbuf *m)
{
    e->received++;
    if (e->wait_n == TRUNK_BACKLOG) {
        rte_pktmbuf_free(m);
        e->overflow++;
        return;
    }
    e->wait[(e->wait_head + e->wait_n++) % TRUNK_BACKLOG] = m;
}

static void hand_over_held(struct trunk_end *e)
{
    struct rte_mbuf **m;

    while (e->n_held && *(m = &e->held[e->next % TRUNK_HELD])) {
        hand_over(e, *m);
        *m = NULL;
        e->n_held--;
        e->next++;
    }
}

/* Those before the first frame held are lost. */
static void give_up_missing(struct trunk_end *e)
{
    T_ASSERT(e->n_held, "nothing is held back");
    for (; !e->held[e->next % TRUNK_HELD]; e->next++)
        e->lost++;
    hand_over_held(e);
}

static void take_in_order(struct trunk_end *e, uint32_t number, struct rte_mbuf *m, int64_t now_ns)
{
    int32_t ahead;

    if (e->fresh)
        e->next = number;
    e->fresh = false;
    ahead = (int32_t)(number - e->next);
    if (ahead < 0 || (ahead < (int32_t)TRUNK_HELD && e->held[number % TRUNK_HELD])) {
        rte_pktmbuf_free(m); /* given up before */
        return;
    }
    while (ahead >= (int32_t)TRUNK_HELD && e->n_held) {
        give_up_missing(e);
        ahead = (int32_t)(number - e->next);
    }
    if (ahead >= (int32_t)TRUNK_HELD) {
        e->lost += (unsigned)ahead;
        e->next = number;
    }
    if (!e->n_held)
        e->held_ns = now_ns;
    e->held[number % TRUNK_HELD] = m;
    e->n_held++;
    hand_over_held(e);
}

static struct trunk_end *end_of(struct trunk *t, unsigned from, unsigned link)
{
    for (unsigned i = 0; i < t->n_ends; i++)
        if (t->end[i].link == link && t->end[i].peer == from)
            return &t->end[i];
    return NULL;
}

void ends_input(struct trunk *t, unsigned from, const struct trunk_frame *f, const uint8_t *data,
                size_t bytes, int64_t now_ns)
{
    struct trunk_end *e = end_of(t, from, be16toh(f->link));
    int64_t late = clock_fabric_at(t->sh, now_ns) - (int64_t)be64toh(f->due_ps);
    struct rte_mbuf *m;
    char *at;

    if (!e || !e->up)
        return;
    m = rte_pktmbuf_alloc(t->pool);
    at = m && bytes <= UINT16_MAX ? rte_pktmbuf_append(m, (uint16_t)bytes) : NULL;
    if (!at) {
        rte_pktmbuf_free(m);
        e->overflow++;
        return;
    }
    memcpy(at, data, bytes);
    late = late > 0 ? late * clock_dilation(t->sh) / 1000 : 0;
    lag_record(&t->sh->own->lag, late, 1);
    if (late > LATENESS_BOUND_NS)
        lateness_record(&t->sh->own->loop, now_ns - RTE_MIN(late, (int64_t)LATENESS_GONE_NS),
                        now_ns);
    take_in_order(e, be32toh(f->number), m, now_ns);
}

bool ends_flush(struct trunk *t, int64_t now_ns)
{
    bool waits = false;

    for (unsigned i = 0; i < t->n_ends; i++) {
        struct trunk_end *e = &t->end[i];

        if (e->n_held && now_ns - e->held_ns > HELD_NS) {
            give_up_missing(e);
            e->held_ns = now_ns;
        }
        if (e->up)
            drain(e);
        waits |= e->wait_n || e->n_held;
        if (e->ring)
            ring(e);
    }
    return waits;
}

/* ---- ports ---- */

static void drop_waiting(struct trunk_end *e)
{
    for (unsigned i = 0; i < TRUNK_HELD; i++) {
        rte_pktmbuf_free(e->held[i]);
        e->held[i] = NULL;
    }
    for (; e->wait_n; e->wait_n--) {
        rte_pktmbuf_free(e->wait[e->wait_head]);
        e->wait_head = (uint16_t)((e->wait_head + 1) % TRUNK_BACKLOG);
    }
    e->n_held = 0;
    e->fresh = true;
}

static void end_close(struct trunk_end *e)
{
    drop_waiting(e);
    io_port_close(e->rp);
    e->rp = NULL;
    e->up = false;
    e->page = NULL;
    e->view = NULL;
}

static void end_open(struct trunk *t, struct trunk_end *e)
{
    struct memif_cfg mc = {.listener = e->is_a,
                           .queues = 1,
                           .log2_ring = LOG2_RING,
                           .name = FAB_TRUNK,
                           .pool = t->pool};
    char sock[RUN_PATH];

    if (rundir_link_sock(t->cfg.rd, t->fab->links[e->link].name, sock, sizeof(sock)))
        return;
    mc.socket = sock;
    if (io_port_memif(&e->rp, &mc)) {
        e->rp = NULL;
        return;
    }
    e->fresh = true;
}

static void end_changed(struct trunk *t, struct trunk_end *e, bool up)
{
    e->up = up;
    if (up) {
        shared_refresh(t->sh, t->cfg.rd->path);
        e->view = shared_switch_of(t->sh, e->near);
        e->page = io_port_page(e->rp);
        return;
    }
    if (e->view)
        shared_forget(t->sh, e->view);
    drop_waiting(e);
    e->page = NULL;
    e->view = NULL;
}

void ends_gone(struct trunk *t, unsigned machine)
{
    for (unsigned i = 0; i < t->n_ends; i++)
        if (t->end[i].peer == machine && t->end[i].rp)
            end_close(&t->end[i]);
}

bool ends_check(struct trunk *t)
{
    bool waits = false, missing = false;

    for (unsigned i = 0; i < t->n_ends; i++)
        missing |= !shared_switch_of(t->sh, t->end[i].near);
    if (missing)
        shared_refresh(t->sh, t->cfg.rd->path);
    for (unsigned i = 0; i < t->n_ends; i++) {
        struct trunk_end *e = &t->end[i];
        const struct trunk_peer *p = &t->peer[e->peer];
        bool wanted = peer_usable(p) && bit_of(p->ends, e->bit), up;
        struct pollfd fd;

        if (!wanted && e->rp)
            end_close(e);
        if (!wanted)
            continue;
        if (!e->rp)
            end_open(t, e);
        if (!e->rp)
            continue;
        fd = (struct pollfd){.fd = io_port_fd(e->rp), .events = POLLIN};
        up = e->up && fd.fd >= 0 && poll(&fd, 1, 0) <= 0 ? true : io_port_up(e->rp);
        if (up != e->up)
            end_changed(t, e, up);
        waits |= !up;
    }
    return waits;
}

/* ---- lateness of the processes here, for the other machines ---- */

void ends_lateness(struct trunk *t, int64_t now_ns)
{
    uint8_t m[sizeof(struct trunk_header) + LAG_BUCKETS * sizeof(struct trunk_lag)];
    size_t n = 0;

    memset(&t->lag_now, 0, sizeof(t->lag_now));
    for (unsigned w = 0; w < t->sh->n_sw; w++)
        for (unsigned b = 0; t->sh->sw[w].page != t->sh->own && b < LAG_BUCKETS; b++)
            t->lag_now.n[b] += atomic_load_explicit(&t->sh->sw[w].page->lag.n[b], memory_order_relaxed);
    for (unsigned b = 0; b < LAG_BUCKETS; b++) {
        uint64_t k = t->lag_now.n[b] - t->lag_before.n[b];
        struct trunk_lag l = {htobe16((uint16_t)b), htobe16((uint16_t)RTE_MIN(k, (uint64_t)UINT16_MAX))};

        if (!k)
            continue;
        memcpy(trunk_body(m) + n, &l, sizeof(l));
        n += sizeof(l);
        if (lag_bucket_top(b) > LATENESS_BOUND_NS)
            t->late_ns += lag_bucket_top(b);
    }
    memcpy(&t->lag_before, &t->lag_now, sizeof(t->lag_now));
    for (unsigned i = 0; n && i < t->n; i++)
        if (i != t->me && peer_usable(&t->peer[i]))
            peers_send(t, i, TRUNK_LAG, m, sizeof(struct trunk_header) + n);
    t->lag_sent_ns = now_ns;
}

/* ---- set-up ---- */

static int add_end(struct trunk *t, uint16_t link, bool near_is_a)
{
    const struct fab_link *lk = &t->fab->links[link];
    struct trunk_end *e = &t->end[t->n_ends];

    *e = (struct trunk_end){.link = link,
                            .near = near_is_a ? lk->a : lk->b,
                            .far = near_is_a ? lk->b : lk->a,
                            .is_a = !near_is_a};
    e->peer = (uint8_t)t->fab->nodes[e->far].machine;
    e->bit = t->peer[e->peer].n_ends++;
    e->wait = calloc(TRUNK_BACKLOG, sizeof(*e->wait));
    t->n_ends++;
    return e->wait ? 0 : -ENOMEM;
}

int ends_create(struct trunk *t)
{
    const struct fabric *f = t->fab;
    int rc = 0;

    t->end = calloc(f->n_links + 1u, sizeof(*t->end));
    if (!t->end)
        return -ENOMEM;
    for (uint16_t i = 0; !rc && i < f->n_links; i++) {
        unsigned a = f->nodes[f->links[i].a].machine, b = f->nodes[f->links[i].b].machine;

        if (a != b && (a == t->me || b == t->me))
            rc = add_end(t, i, a == t->me);
    }
    return rc;
}

void ends_destroy(struct trunk *t)
{
    for (unsigned i = 0; t->end && i < t->n_ends; i++) {
        if (t->end[i].rp)
            end_close(&t->end[i]);
        free(t->end[i].wait);
    }
    free(t->end);
}
