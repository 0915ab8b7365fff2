/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/label_map.h"

#include "base/random.h"
#include "trace/grow.h"
#include "trace/number_map.h"

#include <string.h>

static uint32_t label_hash(const char *name, size_t n)
{
    uint64_t h = number_map_secret() ^ n, part;

    for (; n >= sizeof(part); name += sizeof(part), n -= sizeof(part)) {
        memcpy(&part, name, sizeof(part));
        h = random_mix(h ^ part);
    }
    part = 0;
    memcpy(&part, name, n);
    return (uint32_t)random_mix(h ^ part);
}

static uint32_t *label_place(const struct label_map *m, const char *name, size_t n)
{
    uint32_t at = label_hash(name, n) & (m->places - 1);

    for (; m->place[at]; at = (at + 1) & (m->places - 1)) {
        const struct label *l = &m->label[m->place[at] - 1];

        if (l->n == n && !memcmp(m->text + l->at, name, n))
            break;
    }
    return &m->place[at];
}

uint32_t label_map_find(const struct label_map *m, const char *name, size_t n)
{
    uint32_t at = m->places ? *label_place(m, name, n) : 0;

    return at ? m->label[at - 1].value : NUMBER_NONE;
}

static void labels_double(struct label_map *m)
{
    if (m->places > UINT32_MAX / 4)
        enough_is_not();
    free(m->place);
    m->places = m->places ? 2 * m->places : 64;
    m->place = enough_memory(m->places, sizeof(*m->place));
    for (uint32_t i = 0; i < m->n; i++)
        *label_place(m, m->text + m->label[i].at, m->label[i].n) = i + 1;
}

void label_map_enter(struct label_map *m, const char *name, size_t n, uint32_t value)
{
    uint32_t *place;

    if (m->n >= m->places / 2)
        labels_double(m);
    place = label_place(m, name, n);
    if (*place)
        return;
    GROW(m->label, m->n + 1u, &m->room);
    GROW(m->text, m->used + n + 1, &m->text_room);
    memcpy(m->text + m->used, name, n);
    m->label[m->n] = (struct label){.at = m->used, .n = (uint32_t)n, .value = value};
    m->used += n;
    *place = ++m->n;
}

void label_map_clear(struct label_map *m)
{
    if (m->n)
        memset(m->place, 0, m->places * sizeof(*m->place));
    m->n = 0;
    m->used = 0;
}

void label_map_free(struct label_map *m)
{
    free(m->label);
    free(m->text);
    free(m->place);
    *m = (struct label_map){.n = 0};
}
