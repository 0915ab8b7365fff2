/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job of several trees goes on without those that a switch refuses or that fail.
 *
 * The ranks agree in a round of failover.c, while the protocol does not run. Only the protocol
 * knows how far its operation has come, on the other trees as well, so these begin anew: every rank
 * opens new rank halves and joins again under the next attempt's number, which is in the tag. A
 * switch that gets such a JOIN ends the job of the attempt before. The operation starts over from
 * the inputs that were kept.
 */
#include "host/coll/comm.h"

#include <stdio.h>

unsigned protocol_in_use(const struct comm *c, unsigned seat)
{
    return c->protocols ? ((1u << c->protocols->of[seat].n) - 1) & ~c->protocols->lost[seat] : 0;
}

unsigned protocols_go_on(const struct comm *c, unsigned parts, unsigned failing)
{
    unsigned on = 0;

    for (unsigned seat = 0; seat < PROTO_SEATS; seat++)
        if (parts & PART_PROTOCOL(seat) && protocol_in_use(c, seat) & ~failing)
            on |= PART_PROTOCOL(seat);
    return on;
}

bool protocols_have_spare(const struct comm *c, unsigned parts)
{
    for (unsigned seat = 0; seat < PROTO_SEATS; seat++)
        if (parts & PART_PROTOCOL(seat) && __builtin_popcount(protocol_in_use(c, seat)) > 1)
            return true;
    return false;
}

/* Opens the instance anew. */
static int instance_renew(struct comm *c, struct protocol *e, char *err)
{
    int rc;

    for (unsigned k = 0; k < TRIB_COUNTERS; k++)
        e->counted[k] += proto_rank_counters(e->half)[k];
    proto_rank_destroy(e->half);
    e->half = NULL;
    rc = protocol_open_half(c, e, err);
    if (rc)
        return rc;
    e->stopped = false;
    e->child = 0xffff;
    if (e->p->sw)
        protocol_join(c, e);
    return 0;
}

static int seat_drop_trees(struct comm *c, unsigned seat, unsigned failing, char *err)
{
    struct protocols *s = c->protocols;
    int rc = 0;

    for (unsigned i = 0; i < s->n; i++)
        if (s->p[i].seat == seat && failing >> s->p[i].chan & 1)
            protocol_leave(c, &s->p[i]);
    s->lost[seat] |= (uint8_t)failing;
    s->attempt[seat]++;
    for (unsigned i = 0; !rc && i < s->n; i++)
        if (s->p[i].seat == seat && protocol_in_use(c, seat) >> s->p[i].chan & 1)
            rc = instance_renew(c, &s->p[i], err);
    c->topo.sched.protocol[seat] =
        protocol_shares(c->cfg.fab, &s->of[seat], &s->members, s->lost[seat]);
    return rc;
}

int protocols_fewer(struct comm *c, unsigned parts, unsigned failing, char *err)
{
    unsigned on = protocols_go_on(c, parts, failing);
    int rc = 0;

    for (unsigned seat = 0; !rc && seat < PROTO_SEATS; seat++)
        if (on & PART_PROTOCOL(seat))
            rc = seat_drop_trees(c, seat, failing, err);
        else if (parts & PART_PROTOCOL(seat))
            c->protocols->lost[seat] = UINT8_MAX;
    return rc;
}
