/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged prefetch of a rank's working set, for a thread that runs thousands of ranks in turn. The
 * working set is found through chains of pointers that are in no cache themselves, so it is
 * prefetched in steps before the turn. What an operation uses all the time is listed when it
 * begins; its next steps and messages are looked up.
 */
#include "host/coll/comm.h"
#include "host/coll/transport/conn.h"

#define LANES 12u /* of an operation at most: more would evict each other */

static unsigned lanes(const struct coll_req *r)
{
    return RTE_MIN(r->s.n_lanes, LANES);
}

/* Every cache line that holds part of it. */
static void list(struct cacheline_list *l, const void *p, size_t bytes)
{
    size_t before = (uintptr_t)p % RTE_CACHE_LINE_SIZE;

    cacheline_list_add(l, (const char *)p - before, before + bytes);
}

static void list_region(struct comm *c, const struct region *m)
{
    list(&c->working_set, m->mr, c->n_ports * sizeof(*m->mr));
    for (unsigned p = 0; p < c->n_ports; p++)
        if (m->mr[p])
            list(&c->working_set, &m->mr[p]->lkey, sizeof(m->mr[p]->lkey));
}

void prefetch_collect(struct comm *c, const struct coll_req *r)
{
    struct cacheline_list *l = &c->working_set;

    l->n = 0;
    list(l, &r->tag, sizeof(*r) - offsetof(struct coll_req, tag));
    list(l, &r->s.lane, sizeof(r->s.lane));
    list(l, r->lane, lanes(r) * sizeof(*r->lane));
    list(l, r->s.lane, lanes(r) * sizeof(*r->s.lane));
    list(l, c->exec.ready.lane, sizeof(*c->exec.ready.lane));
    list(l, c->port, c->n_ports * sizeof(*c->port));
    for (unsigned p = 0; p < c->n_ports; p++)
        if (c->port[p].cq) {
            list(l, &c->port[p].cq->context, sizeof(struct ibv_context *));
            list(l, &c->port[p].ctx->ops.poll_cq, sizeof(c->port[p].ctx->ops.poll_cq));
        }
    if (r->in)
        list_region(c, r->in);
    if (r->out && r->out != r->in)
        list_region(c, r->out);
}

static void steps_prefetch(const struct lane *l, const struct lane_run *run)
{
    if (run->conn)
        cacheline_prefetch(run->conn, offsetof(struct conn, remote_key));
    if (run->done < l->n)
        cacheline_prefetch(lane_step(l, run->done), lane_stride(l));
    if (run->begun < l->n && run->begun != run->done)
        cacheline_prefetch(lane_step(l, run->begun), lane_stride(l));
}

static void messages_prefetch(const struct lane *l, const struct conn *k)
{
    if (k && l->kind == LANE_RECV) {
        rte_prefetch0(&k->got[k->rx_done % k->depth]);
        rte_prefetch0(&k->slot[k->slot_next % k->depth]);
        rte_prefetch0(&k->slot[k->slot_free % k->depth]);
    } else if (k) {
        rte_prefetch0(k->word);
        rte_prefetch0(&k->tx_at[k->sq_done % CONN_SQ(k)]);
    }
}

void comm_prefetch(const struct comm *c, unsigned step)
{
    const struct coll_req *r = c->exec.running ? c->exec.head : NULL;

    if (step == 0)
        cacheline_prefetch(c, offsetof(struct comm, cfg));
    else if (step == 1)
        cacheline_list_prefetch(&c->working_set);
    for (unsigned i = 0; step > 1 && r && i < lanes(r); i++)
        if (step == 2)
            steps_prefetch(&r->s.lane[i], &r->lane[i]);
        else
            messages_prefetch(&r->s.lane[i], r->lane[i].conn);
}
