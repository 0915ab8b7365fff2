/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/check/check_case.h"

#include "base/random.h"
#include "protocols/host/registry.h"

#include <errno.h>
#include <string.h>

#define MOST_KEYS 20000u /* most elements if keys are not the usual ones */

static const char *const names[PROPERTIES] = {
    [P_EXACT] = "exactness",         [P_LOSS] = "loss",         [P_DUPLICATION] = "duplication",
    [P_REORDERING] = "reordering",   [P_JOBS] = "jobs",         [P_LEAKS] = "leaks",
    [P_DETERMINISM] = "determinism", [P_WORK] = "work",         [P_MEMORY] = "memory",
    [P_HOSTILE] = "hostile",         [P_VERSIONS] = "versions", [P_KEYS] = "keys",
};

const char *property_name(unsigned p)
{
    return p < PROPERTIES ? names[p] : NULL;
}

/* A random number from `least` to `most`. */
static uint64_t check_case_draw(uint64_t *state, uint64_t least, uint64_t most)
{
    return least + random_next(state) % (most - least + 1);
}

static bool chance(uint64_t *state, unsigned percent)
{
    return random_next(state) % 100 < percent;
}

/* Draws one of the types and reductions that the protocol supports. */
static int draw_type(const struct trib_protocol *p, uint64_t *state, struct case_op *o)
{
    unsigned first = (unsigned)check_case_draw(state, 0, TRIB_TYPES * TRIB_REDUCTIONS - 1);

    for (unsigned i = 0; i < TRIB_TYPES * TRIB_REDUCTIONS; i++) {
        unsigned k = (first + i * 7) % (TRIB_TYPES * TRIB_REDUCTIONS);

        o->type = k / TRIB_REDUCTIONS;
        o->op = k % TRIB_REDUCTIONS;
        if (p->supports(o->type, o->op))
            return 0;
    }
    return -ENOTSUP;
}

/* Draws a few elements, or some or many packets; the last one need not be full. */
static uint64_t draw_count(uint64_t *state, const struct check_case *c, enum trib_type type)
{
    uint64_t per = c->payload / trib_size(type), whole;

    switch (check_case_draw(state, 0, 5)) {
    case 0:
        return check_case_draw(state, 1, 4);
    case 1:
        return check_case_draw(state, 1, 4) * per;
    case 2:
        return check_case_draw(state, 1, 3 * per);
    case 3:
        return check_case_draw(state, 1, 8 * per);
    default:
        whole = check_case_draw(state, 4, c->property == P_KEYS ? 200 : 100) * per;
        return whole + check_case_draw(state, 0, per - 1);
    }
}

static int draw_job(struct check_case *c, struct case_job *j, uint64_t *state)
{
    bool spread = chance(state, 50);
    int rc = 0;

    j->nranks = (unsigned)check_case_draw(state, 2, chance(state, 30) ? CASE_RANKS : 5);
    j->n_ops = (unsigned)check_case_draw(state, 1, CASE_OPS);
    j->start_ps = c->n_jobs > 1 ? (int64_t)check_case_draw(state, 0, 50000000) : 0;
    /* Put neighbours at one leaf, or deal the ranks out to the leaves. */
    for (unsigned r = 0; r < j->nranks; r++)
        j->leaf[r] = spread ? r % c->n_leafs : r * c->n_leafs / j->nranks;
    for (unsigned i = 0; i < j->n_ops && !rc; i++) {
        rc = draw_type(c->protocol, state, &j->op[i]);
        j->op[i].count = rc ? 0 : draw_count(state, c, j->op[i].type);
        /* A key may make packets of one element. */
        if (c->any_key && j->op[i].count > MOST_KEYS)
            j->op[i].count = MOST_KEYS;
        j->op[i].in_place = chance(state, 25);
    }
    return rc;
}

static void draw_faults(struct check_case *c, uint64_t *state)
{
    static const uint32_t loss[] = {1000, 10000, 50000, 200000};
    const bool mixed = c->property == P_LEAKS || c->property == P_DETERMINISM ||
                       c->property == P_HOSTILE || (c->property == P_JOBS && chance(state, 50));
    const int64_t rtt = case_round_trip(c);

    if (c->property == P_LOSS)
        c->loss = loss[check_case_draw(state, 0, 3)];
    if (c->property == P_DUPLICATION)
        c->duplication = (uint32_t)check_case_draw(state, 10000, 500000);
    if (c->property == P_REORDERING)
        c->reordering = (uint32_t)check_case_draw(state, 10000, 500000);
    if (mixed) {
        c->loss = (uint32_t)check_case_draw(state, 0, 30000);
        c->duplication = (uint32_t)check_case_draw(state, 0, 50000);
        c->reordering = (uint32_t)check_case_draw(state, 0, 50000);
        c->marks = (uint32_t)check_case_draw(state, 0, 100000);
    }
    c->late_ps = (int64_t)check_case_draw(state, 1, 4) * rtt;
    if (c->property != P_EXACT && c->property != P_WORK && chance(state, 50))
        c->jitter_ps = rtt / 4;
    if (c->property == P_HOSTILE)
        c->hostile = (uint32_t)check_case_draw(state, 10000, 300000);
    if (c->property == P_LEAKS && chance(state, 60)) {
        c->dies = (int)check_case_draw(state, 0, c->job[0].nranks - 1);
        c->dies_ps = c->job[0].start_ps + (int64_t)check_case_draw(state, 0, 30) * rtt / 4;
    }
}

/* Draws one key, at the end of its range or within; the others stay usual. */
static void draw_keys(struct check_case *c, uint64_t *state)
{
    unsigned n = proto_keys(c->protocol), i;

    if (!n)
        return;
    c->any_key = true;
    i = (unsigned)(c->seed - 1) / 3 % n;
    switch ((c->seed - 1) % 3) {
    case 0:
        c->key[i] = c->protocol->keys[i].least;
        break;
    case 1:
        c->key[i] = c->protocol->keys[i].most;
        break;
    default:
        c->key[i] = (int64_t)((uint64_t)c->protocol->keys[i].least +
                              random_next(state) % ((uint64_t)c->protocol->keys[i].most -
                                                    (uint64_t)c->protocol->keys[i].least + 1));
    }
}

/* Sets a key to a low value: with fewer servers than ranks, or a pool of one slot, forged packets
 * and other jobs find defects that usual values hide. */
static void draw_low_key(struct check_case *c, uint64_t *state)
{
    unsigned n = proto_keys(c->protocol), i;

    if (!n)
        return;
    c->any_key = true;
    i = (unsigned)check_case_draw(state, 0, n - 1);
    c->key[i] = c->protocol->keys[i].least + (int64_t)check_case_draw(state, 0, 3);
    if (c->key[i] > c->protocol->keys[i].most)
        c->key[i] = c->protocol->keys[i].most;
}

int64_t case_round_trip(const struct check_case *c)
{
    unsigned links = c->n_leafs > 1 ? 4 : 2;

    return links *
           (c->latency_ps + (int64_t)((c->payload + 82) * 8 * 1000000000000ull / c->rate_bps));
}

int case_draw(struct check_case *c, const struct trib_protocol *p, const int64_t *usual,
              enum property property, uint64_t seed)
{
    static const uint32_t payloads[] = {256, 1012, 1024, 4064};
    static const uint64_t rates[] = {100000000000, 400000000000};
    uint64_t state = random_mix(seed) ^ (uint64_t)property << 56;
    int rc = 0;

    memset(c, 0, sizeof(*c));
    c->protocol = p;
    c->property = property;
    c->seed = seed;
    memcpy(c->key, usual, sizeof(c->key));
    c->n_leafs = chance(&state, 50) ? 1 : (unsigned)check_case_draw(&state, 2, CASE_LEAFS);
    c->n_jobs = property == P_JOBS || (property == P_LEAKS && chance(&state, 50))
                    ? (unsigned)check_case_draw(&state, 2, CASE_JOBS)
                    : 1;
    c->payload = payloads[check_case_draw(&state, 0, 3)];
    c->window = 1u << check_case_draw(&state, 4, 8);
    c->buffers = 1u << check_case_draw(&state, 2, 8);
    c->rate_bps = rates[check_case_draw(&state, 0, 1)];
    c->latency_ps = (int64_t)check_case_draw(&state, 100000, 1000000);
    c->memory = 64u << 20;
    c->dies = -1;
    if (property == P_MEMORY)
        c->memory = check_case_draw(&state, 0, (1u << check_case_draw(&state, 8, 26)) - 1);
    if (property == P_KEYS) { /* allow many packets */
        draw_keys(c, &state);
        c->payload = payloads[0];
        c->window = 256;
    }
    if ((property == P_HOSTILE || property == P_JOBS) && chance(&state, 50))
        draw_low_key(c, &state);
    for (unsigned i = 0; i < c->n_jobs && !rc; i++)
        rc = draw_job(c, &c->job[i], &state);
    draw_faults(c, &state);
    return rc;
}
