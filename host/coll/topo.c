#include "host/coll/topo.h"

#include <errno.h>
#include <stdlib.h>

unsigned topo_channels(const struct topo *t, unsigned a, unsigned b, struct topo_channel *ch,
                       unsigned max)
{
    const struct fabric *f = t->fab;
    const struct fab_node *na = &f->nodes[f->hosts[t->host_of_rank[a]]],
                          *nb = &f->nodes[f->hosts[t->host_of_rank[b]]];
    uint64_t ra = na->ports[0].rate_bps, rb = nb->ports[0].rate_bps;

    if (!max)
        return 0;
    ch[0] = (struct topo_channel){.rate_bps = ra < rb ? ra : rb};
    return 1;
}

static unsigned rates(void *ctx, unsigned from, unsigned peer, uint64_t *rate_bps, unsigned max)
{
    const struct topo *t = ctx;
    struct topo_channel ch[SCHED_MAX_CHANS];
    unsigned n = topo_channels(t, from, peer, ch, max < SCHED_MAX_CHANS ? max : SCHED_MAX_CHANS);

    for (unsigned i = 0; i < n; i++)
        rate_bps[i] = ch[i].rate_bps;
    return n;
}

int topo_init(struct topo *t, const struct fabric *fab, unsigned rank, unsigned nranks,
              const uint16_t *host_of_rank, unsigned trees)
{
    uint16_t *domain = malloc(nranks * sizeof(*domain));

    if (!domain)
        return -ENOMEM;
    for (unsigned r = 0; r < nranks; r++)
        domain[r] = (uint16_t)r;
    *t = (struct topo){.fab = fab,
                       .rank = rank,
                       .nranks = nranks,
                       .host_of_rank = host_of_rank,
                       .domain = domain,
                       .sched = {.domain = domain, .channels = rates, .ctx = t, .trees = trees}};
    return 0;
}

void topo_free(struct topo *t)
{
    free(t->domain);
    t->domain = NULL;
}
