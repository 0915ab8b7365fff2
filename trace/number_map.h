/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A number, from 0 on in order of arrival, for each pair of numbers: what messages, collectives and ids
 * of nodes are looked up by. Where an entry lies depends on a secret of the process, so that no
 * file makes look-ups slow; what a map says does not depend on it.
 */
#ifndef TRIB_TRACE_NUMBER_MAP_H
#define TRIB_TRACE_NUMBER_MAP_H

#include <stdint.h>
#include <stddef.h>

#define NUMBER_NONE UINT32_MAX

struct number_map {
    struct number_pair {
        uint64_t a, b;
    } * key;
    uint32_t *place; /* of key + 1; 0: empty */
    uint32_t n, places;
    size_t room;
};

/* The number of this pair; NUMBER_NONE: it has none. */
uint32_t number_map_find(const struct number_map *m, uint64_t a, uint64_t b);
/* The same; a new pair gets the next number, which was m->n before. */
uint32_t number_map_enter(struct number_map *m, uint64_t a, uint64_t b);
void number_map_free(struct number_map *m);

/* A secret of this process. */
uint64_t number_map_secret(void);

#endif
