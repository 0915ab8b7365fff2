/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is in a sum, who is owed a result. A set (struct trib_set) is of a switch's children, or of
 * the ranks below it by their place among them: 16 bytes, which may be part of a slot or of a
 * packet's head. Any ranks of a job are a struct trib_ranks (512 bytes), which is for ranks alone.
 * All functions are inline; both are plain data, and empty where all is zero.
 */
#ifndef TRIBUTARY_RANKS_H
#define TRIBUTARY_RANKS_H

#include <tributary/protocol.h>

#define TRIB_SET_WORDS (TRIB_MAX_CHILDREN / 64)

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

/* ---- any ranks of a job ---- */

struct trib_ranks {
    uint64_t bit[TRIB_RANKS / 64];
};

static inline bool trib_ranks_has(const struct trib_ranks *s, unsigned rank)
{
    return s->bit[rank / 64] >> rank % 64 & 1;
}

/* Whether it was not in it. */
static inline bool trib_ranks_add(struct trib_ranks *s, unsigned rank)
{
    const uint64_t bit = 1ull << rank % 64;
    bool is_new = !(s->bit[rank / 64] & bit);

    s->bit[rank / 64] |= bit;
    return is_new;
}

static inline void trib_ranks_remove(struct trib_ranks *s, unsigned rank)
{
    s->bit[rank / 64] &= ~(1ull << rank % 64);
}

/* The following are of a job of n ranks, and look at no more than these. */

static inline void trib_ranks_clear(struct trib_ranks *s, unsigned n)
{
    for (unsigned i = 0; i < (n + 63) / 64; i++)
        s->bit[i] = 0;
}

/* Adds all of b to a. */
static inline void trib_ranks_join(struct trib_ranks *a, const struct trib_ranks *b, unsigned n)
{
    for (unsigned i = 0; i < (n + 63) / 64; i++)
        a->bit[i] |= b->bit[i];
}

/* The first that is not below `from`; n: there is none. */
static inline unsigned trib_ranks_next(const struct trib_ranks *s, unsigned from, unsigned n)
{
    for (unsigned i = from / 64; i < (n + 63) / 64; i++) {
        uint64_t left = s->bit[i] & (i == from / 64 ? ~0ull << from % 64 : ~0ull);
        unsigned rank = i * 64 + (left ? (unsigned)__builtin_ctzll(left) : 0);

        if (left)
            return rank < n ? rank : n;
    }
    return n;
}

#endif
