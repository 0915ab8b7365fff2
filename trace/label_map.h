/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and their numbers, from 0 on in order of arrival. A map that is cleared keeps its memory. */
#ifndef TRIB_TRACE_LABEL_MAP_H
#define TRIB_TRACE_LABEL_MAP_H

#include <stddef.h>
#include <stdint.h>

struct label_map {
    struct label {
        size_t at; /* in text */
        uint32_t n, value;
    } * label;
    char *text;
    uint32_t *place; /* of label + 1; 0: empty */
    uint32_t n, places;
    size_t room, used, text_room;
};

/* The value of a name of n bytes; NUMBER_NONE: it has none. */
uint32_t label_map_find(const struct label_map *m, const char *name, size_t n);
/* Gives the name this value; of two the first stays. */
void label_map_enter(struct label_map *m, const char *name, size_t n, uint32_t value);
void label_map_clear(struct label_map *m);
void label_map_free(struct label_map *m);

#endif
