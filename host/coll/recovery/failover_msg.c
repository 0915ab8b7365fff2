/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the agreement. When an answer is late, each repetition also goes through another
 * rank, in turn those of the sender's and the receiver's GPU nodes: the rail between the two may
 * have failed.
 */
#include "host/coll/recovery/failover_priv.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

static struct failover_msg msg_make(const struct comm *c, enum failover_type type, unsigned round,
                                    unsigned parts)
{
    struct failover_msg m = {
        .head.magic = rte_cpu_to_be_32(FAILOVER_MAGIC),
        .rank = rte_cpu_to_be_32(c->cfg.rank),
        .parts = rte_cpu_to_be_16((uint16_t)parts),
        .type = (uint8_t)type,
        .round = (uint8_t)round,
        .trees = (uint8_t)c->failover.lost,
        .back = (uint8_t)c->failover.back,
        .protocol = c->protocols ? c->protocols->failing : 0,
    };

    snprintf(m.why, sizeof(m.why), "%.*s", FAILOVER_TEXT - 1, c->failover.why);
    return m;
}

/* A number of messages: an operation has 1 TiB at most, which is fewer than 2^32 messages. */
static rte_be32_t least_on_wire(uint64_t messages)
{
    T_ASSERT(messages < UINT32_MAX || messages == FAILOVER_ALL,
             "an operation has more messages than a cut can count");
    return rte_cpu_to_be_32((uint32_t)messages);
}

static uint64_t least_from_wire(rte_be32_t messages)
{
    return messages == RTE_BE32(UINT32_MAX) ? FAILOVER_ALL : rte_be_to_cpu_32(messages);
}

/* The k-th, in turn, of the ranks that share a GPU node with this rank or with `other`; NO_RANK:
 * there are none. */
#define NO_RANK (~0u)
static unsigned relay_of(const struct comm *c, unsigned other, uint64_t k)
{
    const uint16_t *d = c->topo.domain;
    unsigned n = 0, found = NO_RANK;

    for (unsigned pass = 0; pass < 2 && (!pass || n); pass++) {
        if (pass)
            k %= n;
        for (unsigned r = 0; r < c->cfg.nranks; r++) {
            if (r == other || r == c->cfg.rank || (d[r] != d[other] && d[r] != d[c->cfg.rank]))
                continue;
            if (!pass)
                n++;
            else if (!k--)
                found = r;
        }
    }
    return found;
}

static void send_to(struct comm *c, unsigned rank, struct failover_msg *m)
{
    int64_t tries = (c->now_ns - c->failover.since_ns) / RETRY_NS;
    unsigned via = tries > 1 ? relay_of(c, rank, (uint64_t)tries) : NO_RANK;

    m->to = rte_cpu_to_be_32(rank);
    ctl_send_rank(c, rank, m, sizeof(*m));
    if (via != NO_RANK)
        ctl_send_rank(c, via, m, sizeof(*m));
}

void failover_own_report(const struct comm *c, struct failover_report *p)
{
    const struct failover *f = &c->failover;
    const struct coll_req *r = c->exec.head;
    bool alone = c->exec.running && op_recovery_whole(&r->s) & f->parts;

    *p = (struct failover_report){.here = true,
                                  .flag = (uint8_t)((c->exec.running ? BEGUN : 0) |
                                                    (alone ? ALONE : 0) |
                                                    (f->last_parts & f->parts ? LAST : 0)),
                                  .seq = r ? r->id.seq : c->exec.opseq};
    for (unsigned l = 0; r && l < r->s.n_lanes; l++)
        if (r->s.lane[l].kind == LANE_AGG && r->s.lane[l].peer == GROUP_ALL) {
            T_ASSERT(r->s.lane[l].chan < COLL_TREES, "an AGG lane is of a tree that is not there");
            p->done[r->s.lane[l].chan] = r->lane[l].done;
        }
    p->rail = fit_report(c, p->fit);
    snprintf(p->why, sizeof(p->why), "%.*s", FAILOVER_TEXT - 1, c->fit.less);
}

bool failover_can_report(const struct comm *c)
{
    if (c->failover.parts & PART_BACK && !rejoin_known(c))
        return false;
    return !(c->failover.parts & PART_FIT) || c->failover.stopped & PART_TREES || fit_known(c);
}

void failover_send_ask(struct comm *c, unsigned rank)
{
    struct failover_msg m = msg_make(c, FAILOVER_ASK, c->failover.n_rounds, c->failover.parts);

    send_to(c, rank, &m);
}

void failover_send_report(struct comm *c)
{
    struct failover_msg m = msg_make(c, FAILOVER_REPORT, c->failover.n_rounds, c->failover.parts);
    struct failover_report p;

    if (!failover_can_report(c))
        return;
    failover_own_report(c, &p);
    m.seq = rte_cpu_to_be_32(p.seq);
    m.flag = p.flag;
    for (unsigned k = 0; k < COLL_TREES; k++) {
        m.cut[k].least = least_on_wire(p.done[k]);
        m.cut[k].more = rte_cpu_to_be_32(p.fit[k]);
    }
    m.cut[0].from = rte_cpu_to_be_32(p.rail);
    if (c->failover.parts & PART_FIT)
        memcpy(m.why, p.why, sizeof(m.why));
    send_to(c, 0, &m);
}

void failover_read_report(const struct failover_msg *m, struct failover_report *p)
{
    *p = (struct failover_report){.here = true, .flag = m->flag, .seq = rte_be_to_cpu_32(m->seq)};
    for (unsigned k = 0; k < COLL_TREES; k++) {
        p->done[k] = least_from_wire(m->cut[k].least);
        p->fit[k] = rte_be_to_cpu_32(m->cut[k].more);
    }
    p->rail = rte_be_to_cpu_32(m->cut[0].from);
    memcpy(p->why, m->why, sizeof(p->why));
}

void failover_send_verdict(struct comm *c, unsigned rank, unsigned round)
{
    T_ASSERT(round < c->failover.n_rounds || c->failover.state == FAILOVER_ASKING,
             "a verdict goes out before there is one");
    const struct failover_round *f = &c->failover.round[round];
    struct failover_msg m = msg_make(c, FAILOVER_VERDICT, round, f->parts);

    m.seq = rte_cpu_to_be_32(f->seq);
    m.flag = (f->whole ? WHOLE : 0) | (f->again ? AGAIN : 0);
    m.trees = (uint8_t)f->trees;
    m.back = (uint8_t)f->back;
    m.protocol = (uint8_t)f->protocol;
    for (unsigned k = 0; k < COLL_TREES; k++) {
        const struct sched_cut *cut = &f->how.cut[k];
        uint64_t more = cut->most == FAILOVER_ALL ? UINT32_MAX : cut->most - cut->least;

        m.cut[k] = (struct failover_cut){.least = least_on_wire(cut->least),
                                         .more = rte_cpu_to_be_32((uint32_t)more),
                                         .from = rte_cpu_to_be_32(cut->from)};
        if (f->parts == PART_FIT || f->parts == PART_BACK)
            m.cut[k] = (struct failover_cut){.more = rte_cpu_to_be_32(f->fit[k]),
                                             .from = rte_cpu_to_be_32(f->rail)};
    }
    send_to(c, rank, &m);
}

void failover_read_verdict(const struct comm *c, const struct failover_msg *m,
                           struct failover_round *f)
{
    *f = (struct failover_round){.parts = rte_be_to_cpu_16(m->parts) & FAILOVER_PARTS,
                                 .trees = m->trees,
                                 .back = m->back,
                                 .seq = rte_be_to_cpu_32(m->seq),
                                 .whole = m->flag & WHOLE,
                                 .again = m->flag & AGAIN};
    f->protocol = m->protocol;
    f->fewer = protocols_go_on(c, f->parts, f->protocol);
    for (unsigned k = 0; k < COLL_TREES; k++) {
        uint64_t least = least_from_wire(m->cut[k].least);
        uint32_t more = rte_be_to_cpu_32(m->cut[k].more), from = rte_be_to_cpu_32(m->cut[k].from);

        f->fit[k] = more;
        f->rail = from;
        f->how.cut[k] = (struct sched_cut){.least = least,
                                           .most = more == UINT32_MAX ? FAILOVER_ALL : least + more,
                                           .from = from % c->cfg.nranks};
    }
}

void failover_send_ready(struct comm *c, unsigned trees)
{
    struct failover_msg m = msg_make(c, FAILOVER_READY, c->failover.n_rounds, 0);

    m.trees = (uint8_t)trees;
    send_to(c, 0, &m);
}

void failover_send_end(struct comm *c, unsigned rank, unsigned missing)
{
    struct failover_msg m = msg_make(c, FAILOVER_END, c->failover.n_rounds, c->failover.parts);

    m.cut[0].from = rte_cpu_to_be_32(missing);
    send_to(c, rank, &m);
}
