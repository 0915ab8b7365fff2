/* SPDX-License-Identifier: BSD-3-Clause */
/* The switches of an exchange: aggregators add the parts of the ranks below, and results are passed
 * on. */
#include "model/cost_exchange_priv.h"

#define OLD 16 /* round trips after which another block may take an aggregator */

/* The aggregator of a block, by the hash of tributary/table.h for a switch's first job. */
static struct aggregator *aggregator_of(const struct model_exchange *e, unsigned leaf,
                                        uint32_t block)
{
    uint64_t z = (e->x->first + block) * 0x9e3779b97f4a7c15u + 0xd1b54a32d192ed03u;

    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    return &e->leaf[leaf].slot[(z >> 32) * e->x->aggregators >> 32];
}

/* Sends a sum of `parts` ranks' parts to the server, which has none of them yet. */
static void to_server(struct model *m, unsigned leaf, uint32_t block, uint32_t parts, int64_t now)
{
    struct model_exchange *e = m->exchange;
    struct model_part p =
        exchange_packet(m, TO_SERVER, block, e->on->nranks + leaf, exchange_server(e, block));

    p.first = parts;
    exchange_send(m, &p, now);
}

/* Forwards a rank's part unsummed. */
static void block_pass(struct model *m, unsigned rank, uint32_t block, int64_t now)
{
    struct exchange_rank *r = &m->exchange->rank[rank];
    bool first = !(r->of[block] & OF_PASSED);

    r->of[block] |= OF_PASSED;
    to_server(m, r->leaf, block, first, now);
}

/* Empties an aggregator. Returns how many of its parts are not at the server. */
static uint32_t take_parts(struct model_exchange *e, unsigned leaf, uint32_t block, bool pass)
{
    uint32_t n = 0;

    for (unsigned r = e->leaf[leaf].first; r < e->on->nranks; r++) {
        uint8_t *of = &e->rank[r].of[block];

        if (e->rank[r].leaf != leaf || !(*of & OF_HELD))
            continue;
        n += !(*of & OF_PASSED);
        *of = (uint8_t)((*of & ~OF_HELD) | (pass ? OF_PASSED : 0));
    }
    return n;
}

static bool has_passed(const struct aggregator *a, uint32_t block)
{
    for (unsigned i = 0; i < a->n_passed && i < PASSED; i++)
        if (a->passed[i] == block)
            return true;
    return false;
}

static bool stands_in_the_way(const struct model_exchange *e, const struct aggregator *a,
                              uint32_t block, int64_t now)
{
    if (!a->used || (block >= e->x->window && a->block <= block - e->x->window))
        return false;
    return now - a->since_ps < OLD * (e->on->round_trip_ps + e->on->notice_ps);
}

/* Adds a part to an aggregator, which has other parts of the block or is taken for it. */
static void add_part(struct model *m, struct aggregator *a, unsigned rank, uint32_t block,
                     unsigned fan_in, int64_t now)
{
    struct model_exchange *e = m->exchange;
    unsigned leaf = e->rank[rank].leaf;

    if (!a->used || a->block != block) {
        if (a->used) /* the parts that it held are lost until their ranks send them again */
            take_parts(e, leaf, a->block, false);
        a->used = true;
        a->block = block, a->parts = 0, a->since_ps = now;
    }
    e->rank[rank].of[block] |= OF_HELD;
    if (++a->parts == fan_in)
        to_server(m, leaf, block, take_parts(e, leaf, block, true), now);
}

void exchange_part_at_switch(struct model *m, unsigned rank, uint32_t block, bool again,
                             int64_t now)
{
    struct model_exchange *e = m->exchange;
    unsigned leaf = e->rank[rank].leaf;
    struct aggregator *a = aggregator_of(e, leaf, block);
    unsigned fan_in = e->leaf[leaf].n - (e->rank[exchange_server(e, block)].leaf == leaf);
    bool its = a->used && a->block == block;

    if (fan_in < 2 || again) {
        if (its) {
            to_server(m, leaf, block, take_parts(e, leaf, block, true), now);
            a->used = false;
        }
        block_pass(m, rank, block, now);
    } else if (!its && (has_passed(a, block) || stands_in_the_way(e, a, block, now))) {
        if (!has_passed(a, block))
            a->passed[a->n_passed++ % PASSED] = block;
        block_pass(m, rank, block, now);
    } else {
        add_part(m, a, rank, block, fan_in, now);
    }
}

void exchange_result_at_switch(struct model *m, unsigned leaf, uint32_t block, int64_t now)
{
    struct model_exchange *e = m->exchange;
    struct aggregator *a = aggregator_of(e, leaf, block);

    if (a->used && a->block == block)
        a->used = false;
    for (unsigned r = 0; r < e->on->nranks && !m->rc; r++) {
        struct model_part p;

        if (e->rank[r].leaf != leaf)
            continue;
        p = exchange_packet(m, RESULT_TO_RANK, block, e->on->nranks + leaf, r);
        exchange_send(m, &p, now);
    }
}
