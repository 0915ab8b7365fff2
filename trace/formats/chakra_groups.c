/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of ranks that Chakra's traces name: comm_group.json beside them, or a list within. */
#include "trace/formats/chakra_rank.h"
#include "trace/grow.h"
#include "trace/formats/trace_readers.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MOST (256u << 20)

/* Ranks of a JSON array; *n; NULL: it is none of numbers of ranks. The caller's. */
static uint32_t *ranks_of(const json_t *array, uint32_t *n)
{
    size_t count = json_array_size(array);
    uint32_t *rank = count <= APP_RANKS_MOST ? enough_memory(count + 1, sizeof(*rank)) : NULL;

    *n = (uint32_t)count;
    for (size_t i = 0; rank && i < count; i++) {
        const json_t *one = json_array_get(array, i);
        json_int_t v = json_integer_value(one);

        if (!json_is_integer(one) || v < 0 || v >= APP_RANKS_MOST) {
            free(rank);
            return NULL;
        }
        rank[i] = (uint32_t)v;
    }
    return rank;
}

/* Gives a name its ranks. -EINVAL: they are none, or one is there twice. */
static int group_enter(struct app_graph *g, const char *name, const json_t *array)
{
    uint32_t n, number, twice;
    uint32_t *rank = json_is_array(array) ? ranks_of(array, &n) : NULL;
    int rc;

    if (!rank)
        return -EINVAL;
    if (!app_graph_group_find(g, name, strlen(name), &number))
        number = app_graph_group_new(g, name, strlen(name));
    rc = number == APP_WORLD ? 0 : app_graph_group(g, number, rank, n, &twice);
    free(rank);
    return rc == -EEXIST ? 0 : rc;
}

int chakra_groups_read(struct app_graph *g, struct trace_input *in)
{
    size_t n;
    char *text = trace_input_rest(in, TEXT_MOST, &n);
    json_error_t e;
    json_t *top = text ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &e) : NULL;
    const char *name;
    json_t *array;
    int rc = text ? 0 : -EINVAL;

    free(text);
    if (!rc && !json_is_object(top)) {
        in->line = top || e.line < 1 ? 1 : (uint32_t)e.line;
        rc = trace_refuse(in, top ? "no object" : e.text, strlen(top ? "no object" : e.text),
                          "{\"NAME\": [RANK, ...], ...}");
    }
    if (!rc)
        json_object_foreach(top, name, array)
        {
            if (!rc && group_enter(g, name, array))
                rc = trace_refuse_at(in, "",
                                     "group \"%.40s\": found no list of different ranks, "
                                     "expected one",
                                     name);
        }
    json_decref(top);
    return rc;
}

/* Whether a group has these members, in any order. */
static bool group_same(const struct app_graph *g, uint32_t number, const json_t *ranks)
{
    size_t n = json_array_size(ranks);

    if (number == APP_WORLD || !n)
        return true;
    for (size_t i = 0; i < n; i++) {
        json_int_t v = json_integer_value(json_array_get(ranks, i));

        if (v < 0 || v >= APP_RANKS_MOST || !app_group_has(g, number, (uint32_t)v))
            return false;
    }
    return n == app_group_size(g, number);
}

void chakra_process_group(struct app_graph *g, const json_t *one, const char *file)
{
    const char *name = json_string_value(json_object_get(one, "pg_name"));
    const json_t *ranks = json_object_get(one, "ranks");
    uint32_t known;

    if (!name || !json_is_array(ranks))
        return;
    if (app_graph_group_find(g, name, strlen(name), &known)) {
        if (!group_same(g, known, ranks))
            finding_note(
                &g->found, FINDING_DISAGREE,
                "%s: found %zu other members of group \"%.40s\", expected those said before", file,
                json_array_size(ranks), name);
        return;
    }
    if (json_array_size(ranks))
        group_enter(g, name, ranks);
    else
        app_graph_group_world(g, name, strlen(name));
}

void chakra_process_groups(struct app_graph *g, const char *json, size_t n, const char *file)
{
    json_t *list = json_loadb(json ? json : "", n, 0, NULL), *own = NULL;
    const char *inner = json_string_value(json_array_get(list, 0));
    const json_t *all;

    if (inner) /* the list as a text in a list */
        own = json_loads(inner, 0, NULL);
    all = own ? own : list;
    for (size_t i = 0; i < json_array_size(all); i++)
        chakra_process_group(g, json_array_get(all, i), file);
    json_decref(own);
    json_decref(list);
}
