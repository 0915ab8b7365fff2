/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/app_graph.h"

#include "base/arena.h"
#include "base/assert.h"
#include "trace/grow.h"
#include "trace/number_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The rank that is built. Its arrays are used again for the next one. */
struct app_building {
    struct app_op *op;
    struct app_edge {
        uint32_t waits, on;
    } * edge;
    uint32_t rank, n;
    uint64_t n_edges;
    size_t op_room, edge_room;
    bool open;
};

static void *graph_memory(struct app_graph *g, size_t n, size_t size)
{
    void *at = arena_alloc(&g->arena, n, size);

    if (!at)
        enough_is_not();
    return at;
}

void app_graph_init(struct app_graph *g)
{
    *g = (struct app_graph){.format = ""};
    g->building = enough_memory(1, sizeof(*g->building));
}

void app_graph_free(struct app_graph *g)
{
    label_map_free(&g->group_names);
    free(g->building->op);
    free(g->building->edge);
    free(g->building);
    free(g->rank);
    free(g->group);
    free(g->file);
    arena_free(g->arena);
}

uint32_t app_graph_file(struct app_graph *g, const char *name, bool records)
{
    size_t n = strlen(name) + 1;
    char *own = graph_memory(g, n, 1);

    memcpy(own, name, n);
    GROW(g->file, g->n_files + 1u, &g->file_room);
    g->file[g->n_files] = (struct app_file){.name = own, .records = records};
    return g->n_files++;
}

int app_graph_ranks(struct app_graph *g, uint32_t n)
{
    if (n > APP_RANKS_MOST)
        return -ERANGE;
    if (n <= g->n_ranks)
        return 0;
    GROW(g->rank, n, &g->rank_room);
    memset(g->rank + g->n_ranks, 0, (n - g->n_ranks) * sizeof(*g->rank));
    g->n_ranks = n;
    return 0;
}

int app_graph_rank(struct app_graph *g, uint32_t rank, uint32_t file)
{
    T_ASSERT(!g->building->open && file < g->n_files, "a rank begins inside of another");
    if (rank >= APP_RANKS_MOST)
        return -ERANGE;
    app_graph_ranks(g, rank + 1);
    if (g->rank[rank].there)
        return -EEXIST;
    g->rank[rank].there = true;
    g->rank[rank].file = file;
    g->building->rank = rank;
    g->building->n = 0;
    g->building->n_edges = 0;
    g->building->open = true;
    return 0;
}

int64_t app_graph_op(struct app_graph *g, const struct app_op *op)
{
    struct app_building *b = g->building;

    if (b->n >= APP_AT_START - 1 || g->n_ops + b->n >= APP_OPS_MOST)
        return -ERANGE;
    GROW(b->op, b->n + 1u, &b->op_room);
    b->op[b->n] = *op;
    return b->n++;
}

void app_graph_dep(struct app_graph *g, uint32_t waits, uint32_t on, bool at_start)
{
    struct app_building *b = g->building;

    T_ASSERT_HOT(waits < b->n && on < b->n, "a dependency of an operation that is not there");
    GROW(b->edge, b->n_edges + 1, &b->edge_room);
    b->edge[b->n_edges++] = (struct app_edge){waits, on | (at_start ? APP_AT_START : 0)};
}

uint32_t app_graph_rank_ops(const struct app_graph *g)
{
    return g->building->n;
}

struct app_op *app_graph_rank_op(struct app_graph *g, uint32_t i)
{
    return &g->building->op[i];
}

/* Edges by the operation that waits, in the order in which they came. */
static void rank_edges(struct app_graph *g, struct app_rank *r)
{
    const struct app_building *b = g->building;

    r->first = graph_memory(g, r->n + 1u, sizeof(*r->first));
    r->dep = graph_memory(g, b->n_edges, sizeof(*r->dep));
    for (uint64_t i = 0; i < b->n_edges; i++)
        r->first[b->edge[i].waits]++;
    for (uint32_t i = 0, sum = 0; i <= r->n; i++) {
        uint32_t own = r->first[i];

        r->first[i] = sum;
        sum += own;
    }
    for (uint64_t i = 0; i < b->n_edges; i++)
        r->dep[r->first[b->edge[i].waits]++] = b->edge[i].on;
    for (uint32_t i = r->n; i > 0; i--) /* each is at the next one's beginning now */
        r->first[i] = r->first[i - 1];
    r->first[0] = 0;
}

void app_graph_rank_end(struct app_graph *g)
{
    struct app_building *b = g->building;
    struct app_rank *r = &g->rank[b->rank];

    T_ASSERT(b->open, "a rank ends that has not begun");
    if (b->n_edges > UINT32_MAX)
        enough_is_not();
    r->n = b->n;
    r->op = graph_memory(g, r->n, sizeof(*r->op));
    if (r->n)
        memcpy(r->op, b->op, r->n * sizeof(*r->op));
    rank_edges(g, r);
    g->n_ops += r->n;
    g->n_deps += b->n_edges;
    b->open = false;
}

/* ---- groups ---- */

static int rank_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

#define LABEL_WORLD (NUMBER_NONE - 1)

bool app_graph_group_find(const struct app_graph *g, const char *name, size_t n, uint32_t *group)
{
    uint32_t value = label_map_find(&g->group_names, name, n);

    *group = value == LABEL_WORLD ? APP_WORLD : value;
    return value != NUMBER_NONE;
}

static void groups_make(struct app_graph *g, uint32_t n)
{
    if (n <= g->n_groups)
        return;
    GROW(g->group, n, &g->group_room);
    memset(g->group + g->n_groups, 0, (n - g->n_groups) * sizeof(*g->group));
    g->n_groups = n;
}

uint32_t app_graph_group_new(struct app_graph *g, const char *name, size_t n)
{
    label_map_enter(&g->group_names, name, n, g->n_groups);
    groups_make(g, g->n_groups + 1);
    return g->n_groups - 1;
}

void app_graph_group_world(struct app_graph *g, const char *name, size_t n)
{
    label_map_enter(&g->group_names, name, n, LABEL_WORLD);
}

int app_graph_group(struct app_graph *g, uint32_t number, const uint32_t *rank, uint32_t n,
                    uint32_t *twice)
{
    struct app_group *group;

    if (number >= APP_GROUPS_MOST)
        return -ERANGE;
    if (number < g->n_groups && g->group[number].there)
        return -EEXIST;
    groups_make(g, number + 1);
    group = &g->group[number];
    *group = (struct app_group){.n = n, .there = true};
    group->rank = graph_memory(g, n, sizeof(*rank));
    group->sorted = graph_memory(g, n, sizeof(*rank));
    for (uint32_t i = 0; i < n; i++)
        group->rank[i] = group->sorted[i] = rank[i];
    qsort(group->sorted, n, sizeof(*rank), rank_compare);
    for (uint32_t i = 1; i < n; i++)
        if (group->sorted[i] == group->sorted[i - 1]) {
            *twice = group->sorted[i];
            return -EINVAL;
        }
    return 0;
}

bool app_group_has(const struct app_graph *g, uint32_t group, uint32_t rank)
{
    if (group == APP_WORLD)
        return rank < g->n_ranks;
    return app_group_size(g, group) && bsearch(&rank, g->group[group].sorted, g->group[group].n,
                                               sizeof(rank), rank_compare) != NULL;
}

uint32_t app_group_size(const struct app_graph *g, uint32_t group)
{
    if (group == APP_WORLD)
        return g->n_ranks;
    return group < g->n_groups && g->group[group].there ? g->group[group].n : 0;
}

/* ---- names ---- */

const char *app_kind_name(unsigned kind)
{
    static const char *const names[] = {
#define ROW(kind, name) name,
        APP_KIND_TABLE
#undef ROW
    };

    return names[kind];
}

const char *app_coll_name(unsigned coll)
{
    static const char *const names[] = {
#define ROW(kind, name) name,
        APP_COLL_TABLE
#undef ROW
    };

    return names[coll];
}

const char *app_graph_place(const struct app_graph *g, uint32_t rank, const struct app_op *op,
                            char *text, size_t size)
{
    const struct app_file *f = &g->file[g->rank[rank].file];

    if (f->records)
        snprintf(text, size, "%s: rank %u, record %u", f->name, rank, op->line);
    else
        snprintf(text, size, "%s:%u", f->name, op->line);
    return text;
}
