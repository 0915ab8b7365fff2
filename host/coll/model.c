/*
 * What a collective should take. Nothing here is fitted: link rates and latencies of the conf, the
 * schedule that is executed, and what a frame occupies on a link. Software costs nothing in fabric
 * time (that it does not show is what fidelity is about).
 *
 * For long vectors it comes to the formulas of figures.md, times the share of headers: F21 for the
 * ring, F25 in the switches.
 */
#include "host/coll/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADERS       58 /* Ethernet 14, IP 20, UDP 8, BTH 12, ICRC 4 */
#define LINK_OVERHEAD 24 /* preamble, FCS, inter-frame gap */
#define FRAME_MIN     60

static uint64_t frame_wire(uint64_t payload, bool imm)
{
    uint64_t n = HEADERS + (payload + 3) / 4 * 4 + (imm ? 4 : 0);

    return (n < FRAME_MIN ? FRAME_MIN : n) + LINK_OVERHEAD;
}

struct model_msg model_message(uint64_t len, uint32_t mtu, bool imm)
{
    uint64_t full = len ? (len - 1) / mtu : 0; /* frames before the last */
    struct model_msg m = {.tail = frame_wire(len - full * mtu, imm)};

    m.frame = full ? frame_wire(mtu, false) : m.tail;
    m.wire = full * m.frame + m.tail;
    return m;
}

int64_t model_ps(const struct model *m, uint32_t dirlink, uint64_t bytes)
{
    const struct fabric *f = m->fab;
    uint64_t rate = dirlink < 2u * f->n_links
                        ? f->links[dirlink / 2].rate_bps
                        : f->nodes[f->hosts[dirlink - 2u * f->n_links]].ports[0].rate_bps;

    return rate ? (int64_t)((unsigned __int128)bytes * 8000000000000ULL / rate) : 0;
}

int64_t model_latency(const struct model *m, uint32_t dirlink)
{
    return dirlink < 2u * m->fab->n_links ? m->fab->links[dirlink / 2].latency_ps : 0;
}

/* From a host to itself: its NIC's loop, as fast as its link and without its latency. */
void model_path(const struct fabric *fab, uint16_t from, uint16_t to, struct model_path *p)
{
    if (from == to && fab->nodes[from].kind == FAB_HOST) {
        p->n = 1;
        p->link[0] = 2u * fab->n_links + fab->nodes[from].host_index;
    } else {
        p->n = from == to ? 0 : fabric_path(fab, from, to, p->link, MODEL_HOPS);
    }
}

uint16_t model_node(const struct model *m, unsigned rank)
{
    return m->fab->hosts[m->host_of_rank[rank]];
}

unsigned model_crossings(const struct fabric *fab, uint16_t from, const struct model_path *p)
{
    unsigned n = 0;
    uint16_t at = from;

    for (unsigned i = 0; i < p->n && p->link[i] < 2u * fab->n_links; i++) {
        const struct fab_link *l = &fab->links[p->link[i] / 2];
        uint16_t to = p->link[i] & 1 ? l->a : l->b;

        n += fab->nodes[at].proc != fab->nodes[to].proc;
        at = to;
    }
    return n;
}

static void busiest(const struct model *m, struct coll_prediction *p)
{
    int64_t least = 0;

    for (uint32_t d = 0; d < 2u * m->fab->n_links; d++) {
        int64_t t = model_ps(m, d, (uint64_t)m->bytes[d]);

        if (t > least) {
            least = t;
            p->busiest_dirlink = d;
            p->busiest_link_bytes = (uint64_t)(m->bytes[d] + 0.5);
        }
    }
    if (p->time_ps < least)
        p->time_ps = least;
}

static int check(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank)
{
    if (!nranks || nranks > FAB_MAX_MEMBERS || (unsigned)a->kind >= COLL_KINDS ||
        (unsigned)a->algo >= ALGO_COUNT || (unsigned)a->type >= DT_COUNT)
        return -EINVAL;
    for (unsigned r = 0; r < nranks; r++)
        if (host_of_rank[r] >= fab->n_hosts)
            return -EINVAL;
    return 0;
}

int coll_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank, uint16_t tree, uint32_t window,
                 struct coll_prediction *p)
{
    struct model m = {
        .fab = fab,
        .in = {.kind = a->kind,
               .algo = a->algo,
               .nranks = nranks,
               .count = a->count,
               .type = a->type,
               .in_place = a->send == a->recv,
               .mtu = fab->mtu},
        .host_of_rank = host_of_rank,
        .n_dir = 2u * fab->n_links + fab->n_hosts,
    };
    int rc = check(fab, a, nranks, host_of_rank);

    memset(p, 0, sizeof(*p));
    if (rc || nranks == 1 || !a->count)
        return rc;
    m.data = calloc(m.n_dir + 1, sizeof(*m.data));
    m.acks = calloc(m.n_dir + 1, sizeof(*m.acks));
    m.free_ps = calloc(m.n_dir + 1, sizeof(*m.free_ps));
    m.bytes = calloc(m.n_dir + 1, sizeof(*m.bytes));
    if (!m.data || !m.acks || !m.free_ps || !m.bytes)
        rc = -ENOMEM;
    else if (a->algo == ALGO_RING)
        rc = model_ring(&m, p);
    else
        rc = model_sharp(&m, tree, window, p);
    if (!rc)
        busiest(&m, p);
    free(m.data);
    free(m.acks);
    free(m.free_ps);
    free(m.bytes);
    return rc;
}
