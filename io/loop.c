/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/loop_impl.h"
#include "io/pool.h"
#include "io/telemetry/telemetry_link.h"
#include "switch/multimem/mm.h"
#include "switch/nic.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define CHECK_NS 50000000 /* interval between checks of links under load */
#define CHECK_IDLE_NS                                                                              \
    1000000 /* and after a round without frames: a peer may
                                           be connecting */
#define SLEEP_MAX_NS            50000000
#define SLEEP_MIN_NS            20000  /* a shorter sleep costs more than it saves */
#define OUTSIDE_NS              50000  /* poll interval of the outside: a NIC rings no bell */
#define WAITING_NS              50000  /* poll interval of full rings: room rings no bell */
#define LAG_NS                  200000 /* latest hand-off of a fast enough machine; PFC covers it */
#define LAG_MAX_PS              (2 * PS_PER_US)
#define YIELDS                  2
#define LINK_DOWN_GRACE_WALL_PS (2 * PS_PER_S) /* liveness is wall time */
#define PAUSE_WALL_PS                                                                              \
    (5 * PS_PER_MS)        /* pause between rounds; after a longer one net_excuse() extends
                              deadlines */
#define AHEAD_PS PS_PER_US /* at dilation 1; below PFC's headroom, see LAG_MAX_PS */

unsigned loop_pool_frames(const struct fabric *fab, const bool *mine)
{
    unsigned n = 8192;

    for (unsigned i = 0; i < fab->n_nodes; i++) {
        const struct fab_node *nd = &fab->nodes[i];

        if (mine && !mine[i])
            continue;
        n += 512u * nd->n_ports;
        if (nd->reduce.on) /* for several groups; unused frames take no memory */
            n += RTE_MIN(64u * nd->reduce.window, 32768u);
        if (nd->multimem) /* for two groups of all its ports; grants take at most 3/4 of the pool */
            n += (unsigned)mm_size(fab, nd, nd->n_ports, fab->mtu).mbufs * 3;
    }
    return RTE_MIN(n, 262144u) - 1;
}

/*
 * Records the lateness of hand-offs in wall time. Reads the clock only at every eighth hand-off of a
 * round: otherwise it would take a tenth of a round of small frames.
 */
static void loop_late(void *ctx, int64_t due_ps, unsigned n)
{
    struct loop *l = ctx;
    int64_t late;

    if (l->late_calls++ % 8 == 0)
        l->late_now_ps = clock_fabric_ps(l->sh);
    late = l->late_now_ps - due_ps;
    lag_record(l->lag, late > 0 ? late * l->dilation / 1000 : 0, n);
}

/* net_cfg.lateness_on_path; counts this process among the switch processes. */
static int64_t loop_lateness_on_path(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps)
{
    const struct loop *l = ctx;

    return lateness_on_path(l->sh, l->fab, NULL, ip, qpn, window_ps);
}

static void loop_calls(struct loop *l)
{
    if (!l->calling)
        return;
    pthread_mutex_lock(&l->call_lock);
    if (l->call_fn)
        l->call_fn(l, l->call_arg);
    l->call_fn = NULL;
    l->calling = false;
    pthread_cond_broadcast(&l->call_done);
    pthread_mutex_unlock(&l->call_lock);
}

int loop_call(struct loop *l, void (*fn)(struct loop *l, void *arg), void *arg)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 5;
    pthread_mutex_lock(&l->call_lock);
    while (l->call_fn && !rc) /* another call is in progress */
        rc = pthread_cond_timedwait(&l->call_done, &l->call_lock, &end);
    if (!rc) {
        l->call_fn = fn;
        l->call_arg = arg;
        l->calling = true;
        loop_bell_ring(l->page, l->bell, &l->call_rung);
        while (l->call_fn == fn && l->call_arg == arg && !rc)
            rc = pthread_cond_timedwait(&l->call_done, &l->call_lock, &end);
        if (rc)
            l->call_fn = NULL;
    }
    pthread_mutex_unlock(&l->call_lock);
    return -rc;
}

/* Publishes the time at which this loop is due to run again. */
static void rest_until(struct loop *l, int64_t due_ns)
{
    l->due_ns = due_ns;
    l->rests = true;
    atomic_store_explicit(&l->late->due_ns, due_ns, memory_order_relaxed);
}

/* Records how late this round is; call it once waiting frames are received. */
static void record_lateness(struct loop *l)
{
    int64_t waited = l->served_ns;
    int64_t due = waited >= 0 ? RTE_MIN(l->due_ns, l->mono_ns - waited) : l->due_ns;

    if (unlikely(l->mono_ns - due > LATENESS_BOUND_NS && l->due_ns))
        lateness_record(l->late, due, l->mono_ns);
    if (waited >= 0)
        lag_record(l->lag, waited, 1);
}

/* After a long pause extends deadlines, so that frames that waited are handled before timers expire. */
static void excuse_pause(struct loop *l, int64_t now)
{
    if (unlikely(now - l->round_ps > l->pause_ps))
        net_excuse(l->net, now);
    l->round_ps = now;
}

/* Whether yielding is futile: the loop that was rung last has not run, perhaps for lack of this CPU. */
static bool yields_futile(const struct loop *l)
{
    return l->idle > FUTILE_YIELDS && l->rang && links_unserved(l->rang);
}

/* After a round without frames: yields, or sleeps until the next deadline or a ring. */
static void loop_rest(struct loop *l, int64_t mono, bool waits)
{
    int64_t next = net_next(l->net), ns = SLEEP_MAX_NS;
    uint32_t token;

    rest_until(l, mono);

    if (next != PS_NEVER)
        ns = RTE_MIN(ns, clock_wall_ns_until(l->sh, next));
    if (ns <= 0)
        return;
    if (l->idle++ < YIELDS || ns < SLEEP_MIN_NS ||
        (mono < l->busy_poll_until_ns && !yields_futile(l))) {
        sched_yield();
        return;
    }
    if (waits)
        ns = RTE_MIN(ns, (int64_t)WAITING_NS);
    if (l->n_outside) /* sleeps longer the longer it was idle */
        ns = RTE_MIN(ns, (int64_t)OUTSIDE_NS << RTE_MIN(l->idle / 64, 4u));
    rest_until(l, mono + ns);
    token = loop_bell_prepare(l->page, l->bell);
    if (links_pending(l) || l->calling)
        loop_bell_cancel(l->page);
    else
        loop_bell_sleep(l->page, l->bell, token, ns);
}

/* Rescales grace times and watchdogs, which are wall time, after a change of the dilation. */
static void follow_dilation(struct loop *l)
{
    int64_t dilation = clock_dilation(l->sh);

    if (dilation == l->dilation)
        return;
    l->dilation = dilation;
    clock_set_policy((uint32_t)dilation);
    net_set_ahead(l->net, dilation == 1 ? AHEAD_PS : 0);
    net_set_link_down_grace(l->net,
                            RTE_MIN(NODE_LINK_DOWN_GRACE_PS, LINK_DOWN_GRACE_WALL_PS / dilation));
    net_set_stall(l->net, NIC_STALL_PS / dilation);
    offenders_window(l, NIC_OFFENCE_WINDOW_PS / dilation);
    l->pause_ps = PAUSE_WALL_PS / dilation;
    if (l->fab->pfc_watchdog_ps)
        net_set_watchdog(l->net, RTE_MAX(l->fab->pfc_watchdog_ps / dilation, (int64_t)1));
}

static void loop_stuck(void *ctx, uint16_t node, uint16_t port, bool stuck)
{
    const struct loop *l = ctx;
    const struct fab_node *nd = &l->fab->nodes[node];
    uint16_t link = nd->ports[port].link;

    fprintf(stderr, "trib-switch: PFC watchdog: %s:%u (%s): %s\n", nd->name, port,
            link == FAB_NONE ? "port to the outside" : l->fab->links[link].name,
            stuck ? "paused without progress, its lossless queue is dropped until that ends"
                  : "released, its lossless queue is restored");
}

static void loop_round(struct loop *l)
{
    int64_t mono = clock_mono_ns(), now = clock_fabric_at(l->sh, mono);
    unsigned moved;
    bool waits;

    follow_dilation(l);
    excuse_pause(l, now);
    l->gap_ns = mono - l->mono_ns;
    l->mono_ns = mono;
    l->served_ns = -1;
    l->late_calls = 0;
    pool_grow(l->cfg.pool);
    moved = links_receive(l, now);
    record_lateness(l);
    moved += net_advance(l->net, now);
    waits = links_flush(l);
    loop_calls(l);
    mono = clock_mono_ns();
    l->due_ns = mono;
    if (moved) {
        if (l->rests)
            atomic_store_explicit(&l->late->due_ns, 0, memory_order_relaxed);
        l->rests = false;
        l->idle = 0;
        l->busy_poll_until_ns = busy_poll_deadline(l->moved_ns, mono);
        l->moved_ns = mono;
    }
    if (mono - l->checked_ns > (moved ? CHECK_NS : CHECK_IDLE_NS)) {
        l->checked_ns = mono;
        links_check(l, now);
    }
    if (!moved)
        loop_rest(l, mono, waits);
}

void loop_run(struct loop *l, volatile sig_atomic_t *stop, void (*ready)(void *ctx), void *ctx)
{
    bool was_ready = false;

    /* Deadlines are microseconds apart: the kernel's default timer slack, 50 us, would dominate the
     * lateness. */
    prctl(PR_SET_TIMERSLACK, 1);
    while (!*stop) {
        loop_round(l);
        if (!was_ready && !l->n_missing) {
            was_ready = true;
            ready(ctx);
        }
    }
}

int loop_create(struct loop **lp, const struct loop_cfg *cfg)
{
    struct loop *l = calloc(1, sizeof(*l));
    struct net_cfg nc = {.fab = cfg->fab,
                         .mine = cfg->mine,
                         .pool = cfg->pool,
                         .parts = cfg->parts,
                         .seed = cfg->seed,
                         .deliver = links_deliver,
                         .late = loop_late,
                         .stuck = loop_stuck,
                         .lateness_on_path =
                             lateness_known(cfg->fab) ? loop_lateness_on_path : NULL,
                         .ctx = l};
    pthread_condattr_t monotonic;
    int rc;

    *lp = NULL;
    if (!l)
        return -ENOMEM;
    l->fab = cfg->fab;
    l->sh = cfg->rd->sh;
    l->page = l->sh->own;
    l->bell = l->sh->own_bell;
    l->lag = &l->page->lag;
    l->late = &l->page->loop;
    l->mono_ns = clock_mono_ns();
    l->cfg = *cfg;
    l->cut = calloc(l->fab->n_links + 1u, sizeof(*l->cut));
    nc.lag_ps = RTE_MIN((int64_t)LAG_NS * PS_PER_NS / clock_dilation(l->sh), LAG_MAX_PS);
    pthread_mutex_init(&l->call_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->call_done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    rc = l->cut ? net_create(&l->net, &nc) : -ENOMEM;
    if (!rc) {
        offenders_watch(l);
        rc = links_create(l, cfg);
    }
    if (rc) {
        loop_destroy(l);
        return rc;
    }
    *lp = l;
    return 0;
}

void loop_destroy(struct loop *l)
{
    if (!l)
        return;
    lateness_forget(l->late);
    links_destroy(l);
    if (l->net)
        net_destroy(l->net);
    pthread_mutex_destroy(&l->call_lock);
    pthread_cond_destroy(&l->call_done);
    free(l->cut);
    free(l);
}

struct net *loop_net(struct loop *l)
{
    return l->net;
}

void loop_tap(struct loop *l, net_tap_fn fn, void *ctx)
{
    l->tap = fn;
    l->tap_ctx = ctx;
    net_tap(l->net, fn, ctx);
}

const struct fabric *loop_fabric(const struct loop *l)
{
    return l->fab;
}

struct shared *loop_shared(const struct loop *l)
{
    return l->sh;
}

bool loop_link_io(const struct loop *l, unsigned i, struct link_io_info *info)
{
    const struct io_port_stats *s;
    const struct link_io *c;

    if (i >= l->n_ios)
        return false;
    c = &l->io[i];
    s = io_port_stats(c->rp);
    *info = (struct link_io_info){
        .kind = c->kind,
        .node = c->node,
        .port = c->port,
        .slot = c->slot,
        .up = c->up,
        .pid = c->up ? io_port_peer(c->rp) : 0,
        .rx = s->rx,
        .tx = s->tx,
        .rx_bad = s->rx_bad,
        .tx_bad = s->tx_bad,
        .rx_nobuf = s->rx_nobuf,
        .connects = s->connects,
        .refused = s->refused,
        .stall_drops = c->kind == LINK_IO_SLOT
                           ? nic_stall_drops(net_node(l->net, c->node), c->port, c->slot)
                           : 0,
        .overflow = c->overflow};
    return true;
}
