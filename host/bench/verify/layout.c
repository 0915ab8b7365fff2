/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/verify/layout.h"

static bool is_root(const struct layout *l)
{
    return l->rank == l->root;
}

static uint64_t all(const struct layout *l)
{
    return l->count * l->nranks;
}

uint64_t layout_send(const struct layout *l)
{
    switch (l->kind) {
    case COLL_BROADCAST:
        return is_root(l) ? l->count : 0;
    case COLL_REDUCE_SCATTER:
    case COLL_ALLTOALL:
        return all(l);
    case COLL_SCATTER:
        return is_root(l) ? all(l) : 0;
    case COLL_BARRIER:
        return 0;
    default:
        return l->count;
    }
}

bool layout_no_recv(const struct layout *l)
{
    return l->in_place && !is_root(l) && (l->kind == COLL_REDUCE || l->kind == COLL_GATHER);
}

uint64_t layout_recv(const struct layout *l)
{
    if (layout_no_recv(l))
        return 0;
    switch (l->kind) {
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
    case COLL_GATHER:
        return all(l);
    case COLL_BARRIER:
        return 0;
    default:
        return l->count;
    }
}

uint64_t layout_send_at(const struct layout *l)
{
    bool own = l->kind == COLL_ALLGATHER || (l->kind == COLL_GATHER && is_root(l));

    return l->in_place && own ? l->rank * l->count : 0;
}

uint64_t layout_recv_at(const struct layout *l)
{
    bool own = l->kind == COLL_REDUCE_SCATTER || (l->kind == COLL_SCATTER && is_root(l));

    return l->in_place && own ? l->rank * l->count : 0;
}

/* Block i of all-to-all comes from rank i, unless that one has nothing for us. */
static unsigned pair_source(const struct layout *l, unsigned i)
{
    unsigned ahead = (l->rank + l->nranks - i) % l->nranks;

    return l->sparse && ahead >= l->sparse ? LAYOUT_NOTHING : i;
}

static unsigned blocks_of_recv(const struct layout *l)
{
    bool many = l->kind == COLL_ALLGATHER || l->kind == COLL_ALLTOALL || l->kind == COLL_GATHER;

    return layout_recv(l) == 0 ? 0 : many ? l->nranks : 1;
}

bool layout_piece(const struct layout *l, unsigned i, struct piece *p)
{
    if (i >= blocks_of_recv(l))
        return false;
    *p = (struct piece){.at = i * l->count, .n = l->count, .source = i};
    switch (l->kind) {
    case COLL_ALLREDUCE:
        p->source = LAYOUT_ALL;
        break;
    case COLL_REDUCE:
        p->source = is_root(l) ? LAYOUT_ALL : LAYOUT_NOTHING;
        break;
    case COLL_BROADCAST:
        p->source = l->root;
        break;
    case COLL_REDUCE_SCATTER:
        p->source = LAYOUT_ALL;
        p->first = l->rank * l->count;
        break;
    case COLL_ALLTOALL:
        p->source = pair_source(l, i);
        p->first = l->rank * l->count;
        break;
    case COLL_GATHER:
        p->source = is_root(l) ? i : LAYOUT_NOTHING;
        break;
    case COLL_SCATTER:
        p->source = l->root;
        p->first = l->rank * l->count;
        break;
    case COLL_SENDRECV:
        p->source = (l->rank + l->nranks - 1) % l->nranks;
        break;
    default: /* all-gather: block i is rank i's */
        break;
    }
    return true;
}

unsigned layout_blocks(enum coll_kind kind, unsigned nranks, unsigned sparse)
{
    switch (kind) {
    case COLL_ALLTOALL:
        return sparse ? sparse : nranks;
    case COLL_ALLGATHER:
    case COLL_REDUCE_SCATTER:
    case COLL_GATHER:
    case COLL_SCATTER:
        return nranks;
    default:
        return 1;
    }
}
