#include "switch/mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS      (2 * MCAST_MAX_GROUPS)
#define BUCKET_SHIFT 21

_Static_assert(BUCKETS == 1u << (32 - BUCKET_SHIFT), "bucket_of()");

/* Open addressing. An entry stays when its group is empty, so chains hold; a new group takes the
 * place of an empty one. */
struct entry {
    uint32_t group; /* 0: never used */
    uint32_t members;
};

struct mcast {
    uint16_t words;
    uint32_t used;
    struct entry e[BUCKETS];
    uint64_t *bits; /* [BUCKETS][words] */
};

static uint32_t bucket_of(uint32_t group)
{
    return group * 0x9e3779b1u >> BUCKET_SHIFT;
}

static uint64_t *bits_of(const struct mcast *mc, uint32_t i)
{
    return mc->bits + (size_t)i * mc->words;
}

/* Index of the group's entry, or -1; *spare: where it could go, -1: nowhere. */
static int find(const struct mcast *mc, uint32_t group, int *spare)
{
    int empty = -1;

    for (uint32_t n = 0, i = bucket_of(group); n < BUCKETS; n++, i = (i + 1) % BUCKETS) {
        if (mc->e[i].group == group)
            return (int)i;
        if (empty < 0 && mc->e[i].members == 0 && (mc->e[i].group || mc->used < MCAST_MAX_GROUPS))
            empty = (int)i;
        if (mc->e[i].group == 0)
            break;
    }
    if (spare)
        *spare = empty;
    return -1;
}

const uint64_t *mcast_members(const struct mcast *mc, uint32_t group)
{
    int i = group ? find(mc, group, NULL) : -1;

    return i >= 0 && mc->e[i].members ? bits_of(mc, (uint32_t)i) : NULL;
}

int mcast_join(struct mcast *mc, uint32_t group, uint16_t port)
{
    uint64_t bit = 1ull << (port & 63);
    int spare, i = find(mc, group, &spare);

    if (i < 0) {
        if (spare < 0)
            return -ENOSPC;
        i = spare;
        mc->used += mc->e[i].group == 0;
        mc->e[i].group = group;
    }
    if (bits_of(mc, (uint32_t)i)[port / 64] & bit)
        return 0;
    bits_of(mc, (uint32_t)i)[port / 64] |= bit;
    mc->e[i].members++;
    return 1;
}

bool mcast_leave(struct mcast *mc, uint32_t group, uint16_t port)
{
    uint64_t bit = 1ull << (port & 63);
    int i = group ? find(mc, group, NULL) : -1;

    if (i < 0 || !(bits_of(mc, (uint32_t)i)[port / 64] & bit))
        return false;
    bits_of(mc, (uint32_t)i)[port / 64] &= ~bit;
    mc->e[i].members--;
    return true;
}

void mcast_forget_port(struct mcast *mc, uint16_t port, void (*left)(void *ctx, uint32_t group),
                       void *ctx)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        if (mc->e[i].members && mcast_leave(mc, mc->e[i].group, port))
            left(ctx, mc->e[i].group);
}

bool mcast_others(const struct mcast *mc, uint32_t group, uint16_t port)
{
    int i = group ? find(mc, group, NULL) : -1;

    return i >= 0 && mc->e[i].members > (bits_of(mc, (uint32_t)i)[port / 64] >> (port & 63) & 1);
}

void mcast_each(const struct mcast *mc, void (*fn)(void *ctx, uint32_t group), void *ctx)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        if (mc->e[i].members)
            fn(ctx, mc->e[i].group);
}

int mcast_create(struct mcast **out, uint16_t n_ports)
{
    struct mcast *mc = calloc(1, sizeof(*mc));

    *out = NULL;
    if (!mc)
        return -ENOMEM;
    mc->words = (uint16_t)((n_ports + 63) / 64);
    mc->bits = calloc((size_t)BUCKETS * mc->words + 1, sizeof(*mc->bits));
    if (!mc->bits) {
        free(mc);
        return -ENOMEM;
    }
    *out = mc;
    return 0;
}

void mcast_destroy(struct mcast *mc)
{
    if (!mc)
        return;
    free(mc->bits);
    free(mc);
}
