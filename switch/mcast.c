/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/mcast.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS      (2 * MCAST_MAX_GROUPS)
#define BUCKET_SHIFT 21

_Static_assert(BUCKETS == 1u << (32 - BUCKET_SHIFT), "bucket_of()");

/* Open addressing with linear probing. An entry without members is removed, and the entries behind
 * it move up. */
struct mcast_entry {
    uint32_t group; /* 0: free */
    uint32_t members;
};

/* Fabrics have thousands of ports without groups: tables are allocated with the first group. */
struct mcast {
    uint16_t words;
    uint32_t groups;
    struct mcast_entry *e; /* [BUCKETS] or NULL */
    uint64_t *bits;        /* [BUCKETS][words] */
    uint32_t *held;        /* [64 * words] groups of each port */
};

static uint32_t bucket_of(uint32_t group)
{
    return group * 0x9e3779b1u >> BUCKET_SHIFT;
}

static uint64_t *bits_of(const struct mcast *mc, uint32_t i)
{
    return mc->bits + (size_t)i * mc->words;
}

/* The group's entry, or a free one for it: the table is at most half full. */
static uint32_t mcast_find(const struct mcast *mc, uint32_t group)
{
    uint32_t i = bucket_of(group);

    T_ASSERT_HOT(group && mc->groups <= MCAST_MAX_GROUPS,
                 "no group, or no end to the search for it");
    while (mc->e[i].group && mc->e[i].group != group)
        i = (i + 1) % BUCKETS;
    return i;
}

/* Whether an entry has no members. */
static bool no_bits(const struct mcast *mc, uint32_t i)
{
    uint64_t any = 0;

    for (uint16_t w = 0; w < mc->words; w++)
        any |= bits_of(mc, i)[w];
    return !any;
}

static void take_out(struct mcast *mc, uint32_t hole)
{
    size_t row = mc->words * sizeof(*mc->bits);

    T_ASSERT(mc->groups > 0, "more groups are removed than there were");
    for (uint32_t i = (hole + 1) % BUCKETS; mc->e[i].group; i = (i + 1) % BUCKETS) {
        uint32_t home = bucket_of(mc->e[i].group);

        /* An entry whose home is behind the hole (cyclically) stays: moved into the hole, a search
         * would miss it. */
        if ((i - home) % BUCKETS < (i - hole) % BUCKETS)
            continue;
        mc->e[hole] = mc->e[i];
        memcpy(bits_of(mc, hole), bits_of(mc, i), row);
        hole = i;
    }
    mc->e[hole] = (struct mcast_entry){0};
    memset(bits_of(mc, hole), 0, row);
    mc->groups--;
}

const uint64_t *mcast_members(const struct mcast *mc, uint32_t group)
{
    uint32_t i;

    if (!mc->groups)
        return NULL;
    i = mcast_find(mc, group);
    T_ASSERT_HOT(!mc->e[i].group == !mc->e[i].members, "a group without members, or the reverse");
    return mc->e[i].members ? bits_of(mc, i) : NULL;
}

static int get_tables(struct mcast *mc)
{
    if (!mc->bits)
        mc->bits = calloc((size_t)BUCKETS * mc->words + 1, sizeof(*mc->bits));
    if (!mc->e)
        mc->e = calloc(BUCKETS, sizeof(*mc->e));
    if (!mc->held)
        mc->held = calloc(64u * mc->words + 1, sizeof(*mc->held));
    return mc->bits && mc->e && mc->held ? 0 : -ENOMEM;
}

int mcast_join(struct mcast *mc, uint32_t group, uint16_t port)
{
    uint64_t bit = 1ull << (port & 63);
    int rc = get_tables(mc);
    uint32_t i;

    T_ASSERT(port / 64 < mc->words, "a member at a port that is not there");
    if (rc)
        return rc;
    i = mcast_find(mc, group);
    if (!mc->e[i].group) {
        if (mc->groups == MCAST_MAX_GROUPS)
            return -ENOSPC;
        mc->groups++;
        mc->e[i].group = group;
    }
    if (bits_of(mc, i)[port / 64] & bit)
        return 0;
    bits_of(mc, i)[port / 64] |= bit;
    mc->e[i].members++;
    mc->held[port]++;
    return 1;
}

bool mcast_is_member(const struct mcast *mc, uint32_t group, uint16_t port)
{
    return mc->groups && bits_of(mc, mcast_find(mc, group))[port / 64] >> (port & 63) & 1;
}

uint32_t mcast_held(const struct mcast *mc, uint16_t port)
{
    T_ASSERT(port / 64 < mc->words, "the groups of a port that is not there");
    return mc->held ? mc->held[port] : 0;
}

uint32_t mcast_groups(const struct mcast *mc)
{
    return mc->groups;
}

bool mcast_leave(struct mcast *mc, uint32_t group, uint16_t port)
{
    uint64_t bit = 1ull << (port & 63);
    uint32_t i;

    T_ASSERT(port / 64 < mc->words, "a port that is not there leaves a group");
    if (!mc->groups)
        return false;
    i = mcast_find(mc, group);
    if (!(bits_of(mc, i)[port / 64] & bit))
        return false;
    T_ASSERT(mc->e[i].members > 0, "a port leaves a group that counts no members");
    bits_of(mc, i)[port / 64] &= ~bit;
    mc->e[i].members--;
    T_ASSERT(mc->held[port] > 0, "a port leaves a group that counts no groups");
    mc->held[port]--;
    T_ASSERT(!mc->e[i].members == no_bits(mc, i), "a group counts other members than it has");
    if (!mc->e[i].members)
        take_out(mc, i);
    return true;
}

void mcast_forget_port(struct mcast *mc, uint16_t port, void (*left)(void *ctx, uint32_t group),
                       void *ctx)
{
    /* Removing an entry may move another one into its place, so the place is checked again. */
    for (uint32_t i = 0; mc->groups && i < BUCKETS;) {
        uint32_t group = mc->e[i].group;

        if (group && mcast_leave(mc, group, port))
            left(ctx, group);
        else
            i++;
    }
}

bool mcast_others(const struct mcast *mc, uint32_t group, uint16_t port)
{
    uint32_t i;

    if (!mc->groups)
        return false;
    i = mcast_find(mc, group);
    return mc->e[i].members > (bits_of(mc, i)[port / 64] >> (port & 63) & 1);
}

void mcast_each(const struct mcast *mc, void (*fn)(void *ctx, uint32_t group), void *ctx)
{
    for (uint32_t i = 0; mc->groups && i < BUCKETS; i++)
        if (mc->e[i].group)
            fn(ctx, mc->e[i].group);
}

int mcast_create(struct mcast **out, uint16_t n_ports)
{
    struct mcast *mc = calloc(1, sizeof(*mc));

    *out = NULL;
    if (!mc)
        return -ENOMEM;
    mc->words = (uint16_t)((n_ports + 63) / 64);
    *out = mc;
    return 0;
}

void mcast_destroy(struct mcast *mc)
{
    if (!mc)
        return;
    free(mc->e);
    free(mc->bits);
    free(mc->held);
    free(mc);
}
