/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LANE_MM: the NVSwitch planes of this rank's GPU node, one multimem member (mm_member.h) on each.
 * Members are the ranks in the node, in their order. Area 0 of a plane's region is the running
 * operation's send buffer, area 1 its receive buffer; if an operation has other buffers than the
 * one before, they are bound before it begins here, and so before the barrier that begins its
 * schedule (collective/nvls.c). The barrier at its end allows the next one to bind others.
 */
#include "host/coll/transport/conn.h"
#include "host/coll/transport/mm_member.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PLANE_CQE 192u /* of an mmc */

enum { AREA_IN, AREA_OUT, AREAS };

static const char *name_of(const struct comm *c, const struct plane *p)
{
    return c->cfg.fab->nodes[p->node].name;
}

/* One plane for each channel to another rank of the GPU node, in order, while they lead to
 * NVSwitches. */
int planes_create(struct comm *c, char *err)
{
    const struct fabric *f = c->cfg.fab;
    const struct fab_node *host = &f->nodes[f->hosts[c->cfg.host_of_rank[c->cfg.rank]]];
    const uint16_t *domain = c->topo.domain;
    struct fab_channel ch[SCHED_MAX_CHANS];
    unsigned mate = 0, n;
    int rc = 0;

    if (!(c->cfg.algos & COMM_MM_ALGOS) || !c->topo.sched.multimem)
        return 0;
    while (mate < c->cfg.nranks && (domain[mate] != domain[c->cfg.rank] || mate == c->cfg.rank))
        mate++;
    if (mate == c->cfg.nranks)
        return 0;
    n = topo_channels(&c->topo, c->cfg.rank, mate, ch, SCHED_MAX_CHANS);
    for (unsigned i = 0; !rc && i < n; i++) {
        struct plane *p = &c->plane[c->n_planes];

        if (f->nodes[host->ports[ch[i].port_a].peer_node].role != FAB_ROLE_NVSWITCH)
            break;
        *p = (struct plane){.port = &c->port[ch[i].port_a],
                            .node = host->ports[ch[i].port_a].peer_node,
                            .lane = LANE_NONE};
        c->n_planes++;
        rc = port_reserve(p->port, PLANE_CQE);
    }
    if (rc)
        snprintf(err, COMM_TEXT, "completion queue for multimem: %s", strerror(-rc));
    return rc;
}

static void plane_send(void *ctx, const struct mm_ctl *m)
{
    struct plane *p = ctx;

    if (!ctl_send(p->c, p->port->index, p->ah, AGG_QPN, m, sizeof(*m)))
        p->due = p->c->ctl.due = true;
}

void planes_pump(struct comm *c)
{
    for (unsigned i = 0; i < c->n_planes; i++) {
        struct plane *p = &c->plane[i];

        if (!p->due || !p->m)
            continue;
        p->due = false;
        mmc_repeat(p->m);
    }
}

int planes_start(struct comm *c, char *err)
{
    const uint16_t *domain = c->topo.domain;
    unsigned member = 0, members = 0;
    int rc = 0;

    for (unsigned r = 0; r < c->cfg.nranks; r++) {
        member += r < c->cfg.rank && domain[r] == domain[c->cfg.rank];
        members += domain[r] == domain[c->cfg.rank];
    }
    for (unsigned i = 0; !rc && i < c->n_planes; i++) {
        struct plane *p = &c->plane[i];
        struct mmc_cfg cfg = {.port = p->port,
                              .name = name_of(c, p),
                              .group = c->cfg.group,
                              .key = c->cfg.key,
                              .member = member,
                              .members = members,
                              .wr_tag = WR_ID(WR_MM, i, 0),
                              .say = plane_send,
                              .ctx = p};

        gid_of_ip(&cfg.gid, c->cfg.fab->nodes[p->node].ip);
        p->c = c;
        p->ah = ud_address(p->port, &cfg.gid);
        rc = p->ah ? mmc_create(&p->m, &cfg) : -EHOSTUNREACH;
        if (rc)
            snprintf(err, COMM_TEXT, "multimem at %s: %s", name_of(c, p), strerror(-rc));
    }
    return rc;
}

bool planes_ready(const struct comm *c)
{
    for (unsigned i = 0; i < c->n_planes; i++)
        if (!c->plane[i].m || mmc_state(c->plane[i].m) == MMC_OPENING)
            return false;
    return true;
}

const char *planes_late(const struct comm *c)
{
    for (unsigned i = 0; i < c->n_planes; i++)
        if (c->plane[i].m && mmc_state(c->plane[i].m) == MMC_OPENING)
            return name_of(c, &c->plane[i]);
    return NULL;
}

/* False: the plane has failed. */
static bool plane_check(struct comm *c, struct plane *p)
{
    if (mmc_state(p->m) == MMC_READY || mmc_state(p->m) == MMC_OPENING)
        return true;
    if (mmc_state(p->m) != MMC_FAILED || c->closing || c->failover.stopped & PART_MM)
        return false;
    if (join_recoverable(mmc_status(p->m)))
        transport_failed(c, PART_MM, "multimem: %s", mmc_error(p->m));
    else
        comm_fail(c, "multimem: %s", mmc_error(p->m));
    return false;
}

bool planes_input(struct comm *c, unsigned port, uint32_t ip, const struct mm_ctl *m)
{
    bool known = false;

    for (unsigned i = 0; i < c->n_planes; i++) {
        struct plane *p = &c->plane[i];

        if (p->port->index != port || !p->m || c->cfg.fab->nodes[p->node].ip != ip)
            continue;
        known = true;
        mmc_input(p->m, m);
        if (plane_check(c, p))
            comm_check_ready(c);
    }
    return known;
}

void planes_tick(struct comm *c)
{
    for (unsigned i = 0; i < c->n_planes; i++)
        if (c->plane[i].m) {
            mmc_tick(c->plane[i].m);
            plane_check(c, &c->plane[i]);
        }
}

/* ---- operations ---- */

struct plane *plane_of_lane(struct comm *c, const struct lane *l)
{
    return l->chan < c->n_planes ? &c->plane[l->chan] : NULL;
}

/* Starts to bind the next area that has changed. False: all are bound, or the plane cannot. */
static bool area_move(struct plane *p, const struct coll_req *r)
{
    const struct region *region[AREAS] = {r->in, r->out};
    void *addr[AREAS] = {(void *)(uintptr_t)r->args.send, r->args.recv};
    uint64_t bytes[AREAS] = {r->s.in_bytes, r->s.out_bytes};

    /* The switch does not read an all-gather's inputs or write a reduce-scatter's results. */
    bytes[AREA_IN] *= r->id.kind != COLL_ALLGATHER;
    bytes[AREA_OUT] *= r->id.kind != COLL_REDUCE_SCATTER;
    for (uint8_t k = 0; k < AREAS; k++) {
        if (p->bound[k].addr == addr[k] ? bytes[k] <= p->bound[k].bytes : !bytes[k])
            continue;
        uint64_t at = region[k]->remote_addr + (uint64_t)((uint8_t *)addr[k] - region[k]->addr);
        if (mmc_move(p->m, k, at, bytes[k], region[k]->remote[p->port->index]->rkey))
            return false;
        p->bound[k].addr = addr[k];
        p->bound[k].bytes = bytes[k];
        return true;
    }
    return false;
}

bool planes_bind(struct comm *c, const struct coll_req *r)
{
    bool wait = false;

    if (!(COMM_MM_ALGOS >> r->s.in.algo & 1) || !r->s.n_lanes || c->failover.stopped & PART_MM)
        return true;
    for (unsigned i = 0; i < c->n_planes; i++)
        wait |= mmc_moving(c->plane[i].m) || area_move(&c->plane[i], r);
    return !wait;
}

/* The next operation binds its buffers again, also where they are at the same address. */
void planes_unbind(struct comm *c, const struct region *g)
{
    for (unsigned i = 0; i < c->n_planes; i++)
        for (unsigned k = 0; k < AREAS; k++) {
            const uint8_t *at = c->plane[i].bound[k].addr;

            if (at >= g->addr && at < g->addr + g->bytes) {
                c->plane[i].bound[k].addr = NULL;
                c->plane[i].bound[k].bytes = 0;
            }
        }
}

void plane_begin(struct comm *c, unsigned lane)
{
    struct plane *p = plane_of_lane(c, &c->exec.head->s.lane[lane]);

    p->lane = lane;
    p->base = mmc_done(p->m);
}

static struct mmc_step step_of(const struct coll_req *r, const struct plane *p,
                               const struct step *st)
{
    const struct ref *local = st->op == STEP_MM_STORE ? &st->a : &st->dst;

    return (struct mmc_step){.store = st->op == STEP_MM_STORE,
                             .what = {.off = st->off,
                                      .others = !st->self,
                                      .op = (uint8_t)r->id.op,
                                      .dtype = (uint8_t)r->id.type,
                                      .area = st->region == BUF_IN ? AREA_IN : AREA_OUT},
                             .local = exec_addr(r, local),
                             .lkey = exec_lkey(r, local, p->port),
                             .len = (uint32_t)st->len};
}

unsigned plane_run(struct comm *c, struct coll_req *r, unsigned lane)
{
    const struct lane *l = &r->s.lane[lane];
    struct plane *p = plane_of_lane(c, l);
    uint64_t *begun = &r->lane[lane].begun;
    unsigned did = 0;

    while (*begun < l->n && exec_may_start(r, lane, WAIT_START, lane_step(l, *begun))) {
        struct mmc_step s = step_of(r, p, lane_step(l, *begun));

        if (mmc_post(p->m, &s))
            break;
        exec_posted(c, r, lane, (*begun)++);
        did++;
    }
    plane_check(c, p);
    return did;
}

void plane_complete(struct comm *c, const struct ibv_wc *wc)
{
    struct plane *p = &c->plane[WR_INDEX(wc->wr_id)];
    struct coll_req *r = c->exec.head;
    uint64_t done;

    mmc_complete(p->m, wc);
    if (c->state != COMM_READY || !plane_check(c, p) || p->lane == LANE_NONE)
        return;
    done = mmc_done(p->m) - p->base;
    for (uint64_t k = r->lane[p->lane].done; k < done && r->id.op == OP_AVG; k++) {
        const struct step *st = lane_step(&r->s.lane[p->lane], k);

        if (st->last && st->op == STEP_MM_LOAD && st->len && !comm_unbacked(c))
            arith_divide(exec_addr(r, &st->dst), r->id.type, c->cfg.nranks, st->len / r->s.esize);
    }
    exec_done(c, r, p->lane, done);
    exec_wake(c, p->lane);
}

/* ---- the end ---- */

void planes_stop(struct comm *c)
{
    for (unsigned i = 0; i < c->n_planes; i++) {
        c->plane[i].lane = LANE_NONE;
        if (c->plane[i].m)
            mmc_stop(c->plane[i].m);
    }
}

void planes_leave(struct comm *c)
{
    for (unsigned i = 0; i < c->n_planes; i++)
        if (c->plane[i].m)
            mmc_close(c->plane[i].m);
}

bool planes_left(const struct comm *c)
{
    for (unsigned i = 0; i < c->n_planes; i++)
        if (c->plane[i].m && mmc_state(c->plane[i].m) != MMC_CLOSED)
            return false;
    return true;
}

void planes_destroy(struct comm *c)
{
    for (unsigned i = 0; i < c->n_planes; i++) {
        mmc_destroy(c->plane[i].m);
        if (c->plane[i].ah)
            ibv_destroy_ah(c->plane[i].ah);
    }
}
