/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of ranks, or of a switch's children: who is in a sum, who is owed a result. All functions
 * are inline; a set is plain data, and may be part of a slot or of a packet's head (16 bytes).
 */
#ifndef TRIBUTARY_RANKS_H
#define TRIBUTARY_RANKS_H

#include <tributary/protocol.h>

#define TRIB_SET_WORDS (TRIB_RANKS / 64)

struct trib_set {
    uint64_t bit[TRIB_SET_WORDS];
};

static inline bool trib_set_has(const struct trib_set *s, unsigned i)
{
    return s->bit[i / 64] >> i % 64 & 1;
}

/* Whether i was not in it. */
static inline bool trib_set_add(struct trib_set *s, unsigned i)
{
    const uint64_t bit = 1ull << i % 64;
    bool is_new = !(s->bit[i / 64] & bit);

    s->bit[i / 64] |= bit;
    return is_new;
}

static inline void trib_set_remove(struct trib_set *s, unsigned i)
{
    s->bit[i / 64] &= ~(1ull << i % 64);
}

static inline uint32_t trib_set_count(const struct trib_set *s)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < TRIB_SET_WORDS; i++)
        n += (uint32_t)__builtin_popcountll(s->bit[i]);
    return n;
}

/* Whether they have one in common. */
static inline bool trib_set_meets(const struct trib_set *a, const struct trib_set *b)
{
    uint64_t both = 0;

    for (unsigned i = 0; i < TRIB_SET_WORDS; i++)
        both |= a->bit[i] & b->bit[i];
    return both;
}

/* Adds all of b to a. */
static inline void trib_set_join(struct trib_set *a, const struct trib_set *b)
{
    for (unsigned i = 0; i < TRIB_SET_WORDS; i++)
        a->bit[i] |= b->bit[i];
}

/* Whether all are below n: to be asked of every set that came in a packet. */
static inline bool trib_set_below(const struct trib_set *s, unsigned n)
{
    uint64_t beyond = 0;

    for (unsigned i = 0; i < TRIB_SET_WORDS; i++)
        beyond |= n >= 64 * (i + 1) ? 0 : n <= 64 * i ? s->bit[i] : s->bit[i] >> n % 64;
    return !beyond;
}

#endif
