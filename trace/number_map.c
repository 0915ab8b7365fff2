/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/number_map.h"

#include "base/random.h"
#include "system/credential.h"
#include "trace/grow.h"

#include <stdlib.h>
#include <string.h>

uint64_t number_map_secret(void)
{
    static uint64_t secret;

    if (!secret && credential_random(&secret, sizeof(secret)))
        secret = 1;
    return secret;
}

static uint32_t pair_place(const struct number_map *m, uint64_t a, uint64_t b)
{
    uint64_t h = random_mix(a ^ number_map_secret());

    return (uint32_t)random_mix(h + b) & (m->places - 1);
}

/* The place of the pair, or the empty one where it belongs. */
static uint32_t *pair_find(const struct number_map *m, uint64_t a, uint64_t b)
{
    uint32_t at = pair_place(m, a, b);

    while (m->place[at] && (m->key[m->place[at] - 1].a != a || m->key[m->place[at] - 1].b != b))
        at = (at + 1) & (m->places - 1);
    return &m->place[at];
}

uint32_t number_map_find(const struct number_map *m, uint64_t a, uint64_t b)
{
    return m->places ? *pair_find(m, a, b) - 1 : NUMBER_NONE;
}

static void places_double(struct number_map *m)
{
    if (m->places > UINT32_MAX / 4)
        enough_is_not();
    free(m->place);
    m->places = m->places ? 2 * m->places : 64;
    m->place = enough_memory(m->places, sizeof(*m->place));
    for (uint32_t i = 0; i < m->n; i++)
        *pair_find(m, m->key[i].a, m->key[i].b) = i + 1;
}

uint32_t number_map_enter(struct number_map *m, uint64_t a, uint64_t b)
{
    uint32_t *place;

    if (m->n >= m->places / 2)
        places_double(m);
    place = pair_find(m, a, b);
    if (*place)
        return *place - 1;
    GROW(m->key, m->n + 1u, &m->room);
    m->key[m->n] = (struct number_pair){a, b};
    *place = ++m->n;
    return m->n - 1;
}

void number_map_free(struct number_map *m)
{
    free(m->key);
    free(m->place);
    *m = (struct number_map){.n = 0};
}
