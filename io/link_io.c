/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links that leave the process.
 *
 * A process slot of a NIC is a struct endpoint whose output is the memif's receive ring. The NIC pulls
 * frames from it: a process that sends too fast finds its ring full, and no frame is lost here. Frames
 * towards a process, ACKs included, use the DATA queue, which keeps their order.
 *
 * Frames to another process come from an egress queue, which has shaped them to the link's rate. The
 * memif holds as many frames as a link does. If the other process is slow, frames wait in a backlog;
 * beyond that they are dropped and counted.
 */
#include "io/loop_impl.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK_LOG2 9
#define SLOT_LOG2 8 /* default: the client chooses */
/* So many slots beyond the last in use listen. A process takes the lowest free slot, and tries again
 * if that slot does not listen yet. */
#define SLOTS_AHEAD 4u

static int open_ahead(struct loop *l, unsigned door, unsigned slot);

/* ---- process slots ---- */

static void slot_changed(struct link_io *c, int64_t now_ps)
{
    struct endpoint ep = slot_endpoint(c);
    int rc;

    slot_connected(c);
    if (!c->up) {
        net_detach(c->l->net, c->node, c->port, c->slot, now_ps);
        return;
    }
    rc = open_ahead(c->l, c->door, c->slot);
    if (rc && !c->l->slot_failed) {
        c->l->slot_failed = true;
        fprintf(stderr, "trib-switch: %s: cannot listen for processes from slot %u on: %s\n",
                c->l->fab->nodes[c->node].name, c->l->door[c->door].open, strerror(-rc));
    }
    rc = net_attach(c->l->net, c->node, c->port, c->slot, &ep);
    if (rc)
        fprintf(stderr, "trib-switch: %s: slot %u cannot be attached: %s\n",
                c->l->fab->nodes[c->node].name, c->slot, strerror(-rc));
}

/* ---- links ---- */

static void link_backlog_drain(struct link_io *c)
{
    while (c->wait_n) {
        uint16_t run = RTE_MIN(c->wait_n, (uint16_t)(LINK_IO_BACKLOG - c->wait_head)), k;

        k = io_port_tx(c->rp, 0, c->wait + c->wait_head, run);
        c->wait_head = (uint16_t)((c->wait_head + k) % LINK_IO_BACKLOG);
        c->wait_n = (uint16_t)(c->wait_n - k);
        c->ring |= k > 0;
        if (k < run)
            return;
    }
}

static void link_drop_backlog(struct link_io *c)
{
    for (; c->wait_n; c->wait_n--) {
        rte_pktmbuf_free(c->wait[c->wait_head]);
        c->wait_head = (uint16_t)((c->wait_head + 1) % LINK_IO_BACKLOG);
        c->overflow++;
    }
}

/* Puts frames into the ring in bursts, at the latest at the end of the round: moving the ring's indices
 * between two cores takes longer than a short frame. */
void links_deliver(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                   int64_t due_ps)
{
    struct loop *l = ctx;
    unsigned i = l->by_port[node] ? l->by_port[node][port] : 0;
    struct link_io *c = i ? &l->io[i - 1] : NULL;

    (void)due_ps;
    if (!c || !c->up) {
        rte_pktmbuf_free_bulk(m, n);
        if (c)
            c->overflow += n;
        return;
    }
    if (!c->wait_n && n >= LOOP_BURST) {
        uint16_t sent = io_port_tx(c->rp, 0, m, n);

        c->ring |= sent > 0;
        m += sent;
        n = (uint16_t)(n - sent);
    }
    for (uint16_t k = 0; k < n; k++) {
        if (unlikely(c->wait_n == LINK_IO_BACKLOG)) {
            rte_pktmbuf_free(m[k]);
            c->overflow++;
            continue;
        }
        T_ASSERT_HOT(c->wait_n < LINK_IO_BACKLOG && c->wait_head < LINK_IO_BACKLOG,
                     "the backlog of a link is longer than its ring");
        c->wait[(c->wait_head + c->wait_n++) % LINK_IO_BACKLOG] = m[k];
    }
    if (c->wait_n >= LOOP_BURST)
        link_backlog_drain(c);
}

/* Each end of a link writes one of the two stamps of their page: end a, the listener, is the server. */
static bool is_server(const struct link_io *c)
{
    return c->dirlink & 1;
}

static _Atomic int64_t *received_stamp(const struct link_io *c)
{
    return is_server(c) ? &c->page->rung_ns : &c->page->bell.rung_ns;
}

static _Atomic int64_t *sent_stamp(const struct link_io *c)
{
    return is_server(c) ? &c->page->bell.rung_ns : &c->page->rung_ns;
}

bool links_unserved(const struct link_io *c)
{
    if (!c->page)
        return false;
    return c->kind == LINK_IO_SLOT ? bell_unserved(&c->page->bell)
                                   : atomic_load_explicit(sent_stamp(c), memory_order_relaxed);
}

static void link_ring(struct link_io *c)
{
    if (c->page)
        bell_stamp(sent_stamp(c));
    if (c->peer)
        loop_bell_ring(c->peer->page, c->peer->bell, &c->rung);
}

/* Receives one burst a round: more frames from every port would be evicted from the core's cache before
 * they are sent. */
static unsigned link_receive(struct link_io *c, int64_t now_ps)
{
    struct rte_mbuf *m[LOOP_BURST];
    uint16_t n = io_port_rx(c->rp, 0, m, LOOP_BURST);

    if (c->page)
        loop_take_stamp(c->l, received_stamp(c));
    if (unlikely(c->l->tap && c->on_link))
        for (uint16_t i = 0; i < n; i++)
            c->l->tap(c->l->tap_ctx, c->dirlink, m[i], now_ps);
    if (n)
        net_input(c->l->net, c->node, c->port, m, n, now_ps);
    return n;
}

/* Updates page and peer after the process at the other end has come or gone. */
static void link_peer_changed(struct link_io *c)
{
    struct shared *sh = c->l->sh;

    if (c->up) {
        shared_refresh(sh, c->l->cfg.rd->path);
        c->peer = shared_switch_of(sh, c->l->fab->nodes[c->node].ports[c->port].peer_node);
        c->page = io_port_page(c->rp);
        return;
    }
    if (c->peer)
        shared_forget(sh, c->peer);
    c->peer = NULL;
    c->page = NULL;
}

static void link_changed(struct link_io *c, int64_t now_ps)
{
    if (!c->up)
        link_drop_backlog(c);
    if (c->kind == LINK_IO_LINK) {
        link_peer_changed(c);
        c->l->n_links_up += c->up ? 1u : -1u;
        if (!c->away)
            c->l->n_missing -= c->up ? 1u : -1u;
        T_ASSERT(c->l->n_links_up <= c->l->n_links, "more links are up, or down, than there are");
        cuts_state(c->l, c->dirlink / 2, !c->up);
        cuts_take(c->l, now_ps); /* before nodes send announcements, so that these avoid
                                    the link */
    }
    net_port_state(c->l->net, c->node, c->port, c->up, now_ps);
}

/* ---- all links ---- */

unsigned links_receive(struct loop *l, int64_t now_ps)
{
    unsigned n = 0;

    for (unsigned i = 0; i < l->n_live; i++)
        n += l->live[i]->kind == LINK_IO_SLOT ? slot_receive(l->live[i], now_ps)
                                              : link_receive(l->live[i], now_ps);
    return n;
}

bool links_pending(const struct loop *l)
{
    for (unsigned i = 0; i < l->n_live; i++) {
        const struct link_io *c = l->live[i];

        if (c->kind != LINK_IO_SLOT) {
            if (io_port_pending(c->rp, 0))
                return true;
            continue;
        }
        if (!c->budget)
            return true;
        for (unsigned q = 0; q < ENDPOINT_QUEUES; q++)
            if (io_port_arrived(c->rp, (uint16_t)q) != c->arrived[q])
                return true;
    }
    return false;
}

bool links_flush(struct loop *l)
{
    bool waits = false;

    for (unsigned i = 0; i < l->n_live; i++) {
        struct link_io *c = l->live[i];

        if (c->wait_n)
            link_backlog_drain(c);
        waits |= c->wait_n || c->blocked;
        if (c->ring && c->kind == LINK_IO_LINK)
            link_ring(c);
        else if (c->ring && c->page)
            slot_ring(c);
        if (c->ring)
            l->rang = c;
        c->ring = false;
    }
    return waits;
}

/* Logs a refused connection, at most one a second. */
static void log_refused(struct link_io *c)
{
    const struct fab_node *nd = &c->l->fab->nodes[c->node];
    int64_t now = clock_mono_ns();
    const char *why;
    int pid = io_port_refused(c->rp, &why);

    if (c->l->refused_ns && now - c->l->refused_ns < 1000000000)
        return;
    c->l->refused_ns = now;
    fprintf(stderr, "trib-switch: %s.%u.%u: refused the connection of process %d: %s\n", nd->name,
            c->port, c->slot, pid, why);
}

/* Watches the port's descriptor, which may have changed. */
static void watch_port(const struct link_io *c)
{
    watch_set(&c->l->watch, (unsigned)(c - c->l->io), io_port_fd(c->rp));
}

static void link_io_check(struct link_io *c, int64_t now_ps)
{
    const struct io_port_stats *now = io_port_stats(c->rp), was = *now;
    bool up = io_port_up(c->rp);

    net_node(c->l->net, c->node)->cnt[c->port].drops[DROP_RING_FULL] += now->missed - was.missed;
    watch_port(c);
    if (now->refused != was.refused)
        log_refused(c);
    if (up == c->up)
        return;
    c->up = up;
    if (c->kind == LINK_IO_SLOT)
        slot_changed(c, now_ps);
    else
        link_changed(c, now_ps);
}

void links_check(struct loop *l, int64_t now_ps)
{
    struct watch *w = &l->watch;
    unsigned n;

    cuts_take(l, now_ps);
    n = watch_look(w, l->n_ios);
    for (unsigned i = 0; i < l->n_ios; i++)
        if (!l->io[i].up && io_port_expired(l->io[i].rp))
            w->ready[i] = true, n = 1;
    if (!n && !l->n_outside && l->n_links_up == l->n_links)
        return;
    l->n_live = 0;
    for (unsigned i = 0; i < l->n_ios; i++) {
        if (w->fd[i] < 0 || w->ready[i])
            link_io_check(&l->io[i], now_ps);
        if (l->io[i].up)
            l->live[l->n_live++] = &l->io[i];
    }
}

/* ---- set-up ---- */

static bool is_mine(const struct loop_cfg *cfg, uint16_t node)
{
    return !cfg->mine || cfg->mine[node];
}

static struct link_io *link_io_add(struct loop *l, enum link_io_kind kind, uint16_t node,
                                   uint16_t port)
{
    struct link_io *c = &l->io[l->n_ios];

    T_ASSERT(l->n_ios < l->max_ios, "more links leave the process than were counted");
    l->n_ios++;
    *c = (struct link_io){.l = l, .kind = kind, .node = node, .port = port};
    if (kind != LINK_IO_SLOT) {
        l->by_port[node][port] = l->n_ios;
        c->wait = calloc(LINK_IO_BACKLOG, sizeof(*c->wait));
        if (!c->wait)
            return NULL;
    }
    return c;
}

static int open_slot(struct loop *l, unsigned door)
{
    struct door *d = &l->door[door];
    const struct fab_node *nd = &l->fab->nodes[d->node];
    struct memif_cfg mc = {.listener = true,
                           .queues = ENDPOINT_QUEUES,
                           .log2_ring = SLOT_LOG2,
                           .name = nd->name,
                           .secret = d->token,
                           .pool = l->cfg.pool};
    struct io_port *rp;
    char sock[RUN_PATH];
    struct link_io *c;
    int rc = rundir_port_sock(l->cfg.rd, nd->name, d->port, d->open, sock, sizeof(sock));

    mc.socket = sock;
    rc = rc ? rc : rundir_port_dir(l->cfg.rd, nd->name);
    rc = rc ? rc : io_port_memif(&rp, &mc);
    if (rc)
        return rc;
    c = link_io_add(l, LINK_IO_SLOT, d->node, d->port);
    c->rp = rp;
    watch_port(c);
    c->slot = d->open++;
    c->door = door;
    c->late = &l->page->slot[bell_of_slot(l->fab, nd, d->port, c->slot)];
    return access_give_slot(l->cfg.rd, nd->name, d->port, c->slot);
}

/* Opens slots so that SLOTS_AHEAD beyond `slot` listen. */
static int open_ahead(struct loop *l, unsigned door, unsigned slot)
{
    unsigned want = RTE_MIN(slot + 1 + SLOTS_AHEAD, (unsigned)l->fab->slots_per_host);
    int rc = 0;

    while (!rc && l->door[door].open < want)
        rc = open_slot(l, door);
    return rc;
}

static int add_slots(struct loop *l, uint16_t node)
{
    int rc = 0;

    for (uint16_t p = 0; p < l->fab->nodes[node].n_ports && !rc; p++) {
        unsigned door = l->n_doors++;

        T_ASSERT(door < l->max_doors, "more ports of hosts are opened than were counted");
        l->door[door] = (struct door){.node = node, .port = p};
        rc = token_make(l->cfg.rd, l->fab->nodes[node].name, l->door[door].token);
        while (!rc && l->door[door].open < RTE_MIN(SLOTS_AHEAD, l->fab->slots_per_host))
            rc = open_slot(l, door);
    }
    return rc;
}

static int add_link(struct loop *l, const struct loop_cfg *cfg, uint16_t node, uint16_t port)
{
    const struct fab_link *lk = &l->fab->links[l->fab->nodes[node].ports[port].link];
    bool is_a = lk->a == node && lk->a_port == port;
    char sock[RUN_PATH];
    struct memif_cfg mc = {.socket = sock,
                           .listener = is_a,
                           .queues = 1,
                           .log2_ring = LINK_LOG2,
                           .name = l->fab->nodes[node].name,
                           .pool = cfg->pool};
    struct link_io *c = link_io_add(l, LINK_IO_LINK, node, port);
    int rc = rundir_link_sock(cfg->rd, lk->name, sock, sizeof(sock));

    if (!c)
        return -ENOMEM;
    l->n_links++;
    c->away = l->fab->nodes[lk->a].machine != l->fab->nodes[lk->b].machine;
    l->n_missing += !c->away;
    c->on_link = true;
    c->dirlink = 2u * l->fab->nodes[node].ports[port].link + is_a;
    rc = rc ? rc : io_port_memif(&c->rp, &mc);
    if (!rc)
        net_port_state(l->net, node, port, false, 0);
    if (!rc && c->away) /* the other machine may come hours later */
        cuts_state(l, c->dirlink / 2, true);
    return rc;
}

static int add_outside(struct loop *l, const struct loop_cfg *cfg, uint16_t node, uint16_t port)
{
    const struct fab_port *p = &l->fab->nodes[node].ports[port];
    struct link_io *c = link_io_add(l, LINK_IO_OUTSIDE, node, port);
    int rc;

    if (!c)
        return -ENOMEM;
    c->on_link = p->link != FAB_NONE;
    if (c->on_link)
        c->dirlink = 2u * p->link + (l->fab->links[p->link].a == node);
    rc =
        io_port_outside(&c->rp, p->external, cfg->rd->path, l->n_outside++, l->fab->mtu, cfg->pool);
    if (!rc)
        net_port_state(l->net, node, port, false, 0);
    return rc;
}

static int add_node(struct loop *l, const struct loop_cfg *cfg, uint16_t node)
{
    const struct fab_node *nd = &l->fab->nodes[node];
    int rc = 0;

    l->by_port[node] = calloc(nd->n_ports ? nd->n_ports : 1, sizeof(**l->by_port));
    if (!l->by_port[node])
        return -ENOMEM;
    if (nd->kind == FAB_HOST)
        rc = add_slots(l, node);
    for (uint16_t p = 0; !rc && p < nd->n_ports; p++) {
        if (nd->ports[p].external[0])
            rc = add_outside(l, cfg, node, p);
        else if (nd->ports[p].link != FAB_NONE && !is_mine(cfg, nd->ports[p].peer_node))
            rc = add_link(l, cfg, node, p);
    }
    return rc;
}

int links_create(struct loop *l, const struct loop_cfg *cfg)
{
    const struct fabric *f = cfg->fab;
    unsigned most = 0, doors = 0;
    int rc = 0;

    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (is_mine(cfg, i))
            most +=
                f->nodes[i].n_ports * (1u + (f->nodes[i].kind == FAB_HOST ? f->slots_per_host : 0));
    for (uint16_t i = 0; i < f->n_nodes; i++)
        doors += f->nodes[i].kind == FAB_HOST && is_mine(cfg, i) ? f->nodes[i].n_ports : 0;
    l->max_doors = doors;
    l->max_ios = most;
    /* calloc() leaves unused pages untouched. */
    l->door = calloc(doors + 1, sizeof(*l->door));
    l->io = calloc(most + 1, sizeof(*l->io));
    l->live = calloc(most + 1, sizeof(*l->live));
    l->by_port = calloc(f->n_nodes, sizeof(*l->by_port));
    if (!l->io || !l->live || !l->by_port || !l->door)
        return -ENOMEM;
    rc = watch_create(&l->watch, most);
    for (uint16_t i = 0; !rc && i < f->n_nodes; i++)
        if (is_mine(cfg, i))
            rc = add_node(l, cfg, i);
    return rc;
}

void links_destroy(struct loop *l)
{
    for (unsigned i = 0; l->io && i < l->n_ios; i++) {
        if (l->io[i].wait)
            link_drop_backlog(&l->io[i]);
        free(l->io[i].wait);
        io_port_close(l->io[i].rp);
    }
    for (unsigned i = 0; l->by_port && i < l->fab->n_nodes; i++)
        free(l->by_port[i]);
    free(l->io);
    free(l->door);
    free(l->live);
    watch_destroy(&l->watch);
    free(l->by_port);
}
