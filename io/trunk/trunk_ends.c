/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links to other machines. To the local switch process an end looks like the process of the far node
 * (link_io.c): memif, bell and stamps. It is open while the other machine is there and says that its
 * switch process runs, so each of the two processes sees the other's death.
 *
 * Frames that the network loses are sent again (trunk_flow.c): a frame is lost on an emulated link only
 * if the conf says so, or if a switch process is too slow for its backlog.
 */
#include "io/trunk/trunk_priv.h"

#include "base/assert.h"
#include "roce/frame.h"

#include <endian.h>
#include <errno.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG2_RING  9
#define WAITING_NS 50000 /* retry interval while a switch process has no room */

/* ---- bells and stamps: as link_io.c, seen from the other end ---- */

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

/* Datagrams of one system call. A datagram that the socket does not accept is sent again later, like a
 * lost one. */
struct end_batch {
    unsigned n;
    struct mmsghdr msg[TRUNK_BURST];
    struct iovec iov[TRUNK_BURST];
};

static void batch_send(struct trunk *t, unsigned to, struct end_batch *b)
{
    struct trunk_peer *p = &t->peer[to];

    if (b->n && carrier_takes(t, to, clock_mono_ns())) {
        unsigned done = carrier_send(t, to, b->iov, b->n);

        p->sent += done;
        p->send_failed += b->n - done;
        b->n = 0;
    }
    for (unsigned at = 0; at < b->n;) {
        int done = sendmmsg(t->fd, b->msg + at, b->n - at, MSG_DONTWAIT);

        if (done > 0) {
            p->sent += (unsigned)done;
            at += (unsigned)done;
        } else {
            p->send_failed++;
            at++;
        }
    }
    b->n = 0;
}

static void batch_add(struct trunk *t, struct trunk_end *e, struct end_batch *b, uint32_t number)
{
    const size_t before = sizeof(struct trunk_header) + sizeof(struct trunk_frame);
    struct trunk_peer *p = &t->peer[e->peer];
    struct rte_mbuf *m = flow_out_frame(&e->out, number);
    size_t len = RTE_MIN((size_t)m->pkt_len, TRUNK_MAX - before);
    struct trunk_frame f = {.link = htobe32(e->link),
                            .number = htobe32(number),
                            .oldest = htobe32(e->out.acked),
                            .due_ps = htobe64((uint64_t)frame_meta(m)->due_ps)};
    uint8_t *to = t->out[b->n];

    memcpy(trunk_body(to), &f, sizeof(f));
    memcpy(to + before, rte_pktmbuf_mtod(m, void *), len);
    peers_seal(t, e->peer, TRUNK_FRAME, to, before + len);
    b->iov[b->n] = (struct iovec){to, before + len};
    b->msg[b->n].msg_hdr = (struct msghdr){.msg_name = &p->at,
                                           .msg_namelen = sizeof(p->at),
                                           .msg_iov = &b->iov[b->n],
                                           .msg_iovlen = 1};
    if (++b->n == TRUNK_BURST)
        batch_send(t, e->peer, b);
}

/* Sends new frames. All get the due time of the oldest of them. */
static unsigned send_new(struct trunk *t, struct trunk_end *e, int64_t now_ns)
{
    struct rte_mbuf *m[TRUNK_BURST];
    uint16_t n = io_port_rx(e->rp, 0, m, (uint16_t)RTE_MIN(TRUNK_BURST, flow_room(&e->out)));
    struct end_batch b = {0};
    int64_t waited = -1, due;

    if (e->page)
        waited = bell_take_stamp(received_stamp(e), now_ns, now_ns - t->looked_ns);
    due = clock_fabric_at(t->sh, now_ns - RTE_MAX(waited, (int64_t)0));
    for (uint16_t i = 0; i < n; i++) {
        frame_meta(m[i])->due_ps = due;
        batch_add(t, e, &b, flow_out_put(&e->out, m[i], now_ns));
    }
    batch_send(t, e->peer, &b);
    e->sent += n;
    return n;
}

unsigned ends_send(struct trunk *t, int64_t now_ns)
{
    unsigned total = 0;

    for (unsigned i = 0; i < t->n_ends; i++)
        if (t->end[i].up && flow_room(&t->end[i].out))
            total += send_new(t, &t->end[i], now_ns);
    t->looked_ns = now_ns;
    return total;
}

bool ends_pending(const struct trunk *t)
{
    for (unsigned i = 0; i < t->n_ends; i++)
        if (t->end[i].up && flow_room(&t->end[i].out) && io_port_pending(t->end[i].rp, 0))
            return true;
    return false;
}

static void say_ack(struct trunk *t, struct trunk_end *e, const struct flow_ack *a)
{
    uint8_t m[sizeof(struct trunk_header) + sizeof(struct trunk_ack)];
    struct trunk_ack k = {htobe32(e->link), htobe32(a->next), htobe32(a->upto), {0}};

    memcpy(k.held, a->held, sizeof(k.held));
    memcpy(trunk_body(m), &k, sizeof(k));
    peers_send(t, e->peer, TRUNK_ACK, m, sizeof(m));
}

static void trunk_ends_ask(struct trunk *t, struct trunk_end *e)
{
    uint8_t m[sizeof(struct trunk_header) + sizeof(struct trunk_frame)];
    struct trunk_frame f = {.link = htobe32(e->link),
                            .number = htobe32(e->out.next - 1),
                            .oldest = htobe32(e->out.acked)};

    memcpy(trunk_body(m), &f, sizeof(f));
    peers_send(t, e->peer, TRUNK_ASK, m, sizeof(m));
}

/* ---- from other machines ---- */

static void backlog_drain(struct trunk_end *e)
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

static void note_lateness(struct trunk *t, int64_t due_ps, int64_t now_ns)
{
    int64_t late = clock_fabric_at(t->sh, now_ns) - due_ps;

    late = late > 0 ? trunk_clock_wall_ns(late, clock_dilation(t->sh)) : 0;
    lag_record(&t->sh->own->lag, late, 1);
    if (late > LATENESS_BOUND_NS)
        lateness_record(&t->sh->own->loop, now_ns - RTE_MIN(late, (int64_t)LATENESS_GONE_NS),
                        now_ns);
}

static void hand_over(struct trunk *t, struct trunk_end *e, int64_t now_ns)
{
    struct rte_mbuf *m;

    while ((m = flow_in_next(&e->in))) {
        note_lateness(t, frame_meta(m)->due_ps, now_ns);
        e->received++;
        if (e->wait_n == TRUNK_BACKLOG) {
            rte_pktmbuf_free(m);
            e->overflow++;
        } else {
            e->wait[(e->wait_head + e->wait_n++) % TRUNK_BACKLOG] = m;
        }
    }
}

/* Takes a frame. If the pool is empty, the frame counts as lost and is sent again. */
static void take_frame(struct trunk *t, struct trunk_end *e, const uint8_t *body, size_t bytes,
                       int64_t now_ns)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(t->pool);
    struct trunk_frame f;
    char *at;

    memcpy(&f, body, sizeof(f));
    bytes -= sizeof(f);
    at = m && bytes <= UINT16_MAX ? rte_pktmbuf_append(m, (uint16_t)bytes) : NULL;
    if (at) {
        memcpy(at, body + sizeof(f), bytes);
        frame_meta(m)->due_ps = (int64_t)RTE_MIN(be64toh(f.due_ps), (uint64_t)INT64_MAX);
    }
    if (!at || !flow_in_take(&e->in, be32toh(f.number), be32toh(f.oldest), m, now_ns))
        rte_pktmbuf_free(m);
    hand_over(t, e, now_ns);
}

static void free_done(struct trunk_end *e)
{
    struct rte_mbuf *m;

    while ((m = flow_out_done(&e->out)))
        rte_pktmbuf_free(m);
}

static void take_ack(struct trunk *t, struct trunk_end *e, const uint8_t *body, int64_t now_ns)
{
    uint32_t again[FLOW_WINDOW];
    struct end_batch b = {0};
    struct flow_ack a;
    struct trunk_ack k;
    unsigned n;

    memcpy(&k, body, sizeof(k));
    a = (struct flow_ack){.next = be32toh(k.next), .upto = be32toh(k.upto)};
    memcpy(a.held, k.held, sizeof(a.held));
    e->out.way_ns = follow_way(&t->peer[e->peer].follow);
    n = flow_out_ack(&e->out, &a, now_ns, again);
    for (unsigned i = 0; i < n; i++)
        batch_add(t, e, &b, again[i]);
    batch_send(t, e->peer, &b);
    e->again += n;
    free_done(e);
}

void ends_input(struct trunk *t, unsigned from, unsigned type, const uint8_t *body, size_t bytes,
                int64_t now_ns)
{
    struct trunk_end *e = NULL;
    struct trunk_frame f;
    uint32_t link;

    memcpy(&link, body, sizeof(link));
    for (unsigned i = 0; i < t->n_ends && !e; i++)
        if (t->end[i].link == be32toh(link) && t->end[i].peer == from)
            e = &t->end[i];
    if (!e || !e->up)
        return;
    if (type == TRUNK_FRAME) {
        take_frame(t, e, body, bytes, now_ns);
    } else if (type == TRUNK_ASK) {
        memcpy(&f, body, sizeof(f));
        flow_in_asked(&e->in, be32toh(f.number), be32toh(f.oldest));
    } else {
        take_ack(t, e, body, now_ns);
    }
}

int64_t ends_flush(struct trunk *t, int64_t now_ns)
{
    int64_t next = INT64_MAX;

    for (unsigned i = 0; i < t->n_ends; i++) {
        struct trunk_end *e = &t->end[i];
        struct flow_ack a;

        if (!e->up)
            continue;
        backlog_drain(e);
        if (flow_in_ack(&e->in, now_ns, &a))
            say_ack(t, e, &a);
        if (flow_out_asks(&e->out, now_ns))
            trunk_ends_ask(t, e);
        if (e->wait_n)
            next = RTE_MIN(next, now_ns + WAITING_NS);
        next = RTE_MIN(next, RTE_MIN(flow_out_next_ns(&e->out), flow_in_next_ns(&e->in)));
        if (e->ring)
            ring(e);
    }
    return next;
}

/* ---- ports ---- */

static void drop_waiting(struct trunk_end *e)
{
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
    if (io_port_memif(&e->rp, &mc))
        e->rp = NULL;
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

/* Whether its port is up. Asks the port only when its descriptor is ready or it has none. */
static bool end_is_up(struct trunk *t, const struct trunk_end *e)
{
    unsigned i = (unsigned)(e - t->end);
    bool up;

    if (e->up && t->watch.fd[i] >= 0 && !t->watch.ready[i])
        return true;
    up = io_port_up(e->rp);
    watch_set(&t->watch, i, io_port_fd(e->rp));
    return up;
}

bool ends_check(struct trunk *t)
{
    bool waits = false, missing = false;

    for (unsigned i = 0; i < t->n_ends; i++)
        missing |= !shared_switch_of(t->sh, t->end[i].near);
    if (missing)
        shared_refresh(t->sh, t->cfg.rd->path);
    watch_look(&t->watch, t->n_ends);
    for (unsigned i = 0; i < t->n_ends; i++) {
        struct trunk_end *e = &t->end[i];
        const struct trunk_peer *p = &t->peer[e->peer];
        bool wanted = peer_usable(p) && bit_of(p->ends, e->bit), up;

        if (!wanted && e->rp)
            end_close(e);
        if (!wanted)
            continue;
        if (!e->rp)
            end_open(t, e);
        if (!e->rp)
            continue;
        up = end_is_up(t, e);
        if (up != e->up)
            end_changed(t, e, up);
        waits |= !up;
    }
    return waits;
}

/* ---- lateness of local processes, for the other machines ---- */

void ends_lateness(struct trunk *t, int64_t now_ns)
{
    uint8_t m[sizeof(struct trunk_header) + LAG_BUCKETS * sizeof(struct trunk_lag)];
    size_t n = 0;

    memset(&t->lag_now, 0, sizeof(t->lag_now));
    for (unsigned w = 0; w < t->sh->n_sw; w++)
        for (unsigned b = 0; t->sh->sw[w].page != t->sh->own && b < LAG_BUCKETS; b++)
            t->lag_now.n[b] +=
                atomic_load_explicit(&t->sh->sw[w].page->lag.n[b], memory_order_relaxed);
    for (unsigned b = 0; b < LAG_BUCKETS; b++) {
        uint64_t k = t->lag_now.n[b] - t->lag_before.n[b];
        struct trunk_lag l = {htobe16((uint16_t)b),
                              htobe16((uint16_t)RTE_MIN(k, (uint64_t)UINT16_MAX))};

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
    flow_out_init(&e->out);
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
    rc = watch_create(&t->watch, f->n_links);
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
    watch_destroy(&t->watch);
}
