/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/app_colls.h"

#include "trace/grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PLACE 256

uint32_t app_colls_of(const struct app_colls *c, const struct app_op *op)
{
    return number_map_find(&c->keys, op->group, op->tag);
}

/* By its name, where it has one. */
static const char *group_text(const struct app_graph *g, uint32_t group, char *text, size_t size)
{
    const struct label_map *names = &g->group_names;

    snprintf(text, size, group == APP_WORLD ? "all ranks" : "group %u", group);
    for (uint32_t i = 0; i < names->n; i++)
        if (group != APP_WORLD && names->label[i].value == group)
            snprintf(text, size, "group \"%.*s\"", (int)names->label[i].n,
                     names->text + names->label[i].at);
    return text;
}

static void coll_enter(struct app_colls *c, const struct app_op *op, size_t *room)
{
    uint32_t old = c->keys.n, i = number_map_enter(&c->keys, op->group, op->tag);

    GROW(c->all, c->keys.n, room);
    if (c->keys.n != old)
        c->all[i] = (struct app_coll_all){.n = 0};
    c->all[i].n++;
    c->n_members++;
}

static void coll_each(const struct app_graph *g,
                      void (*call)(struct app_colls *, const struct app_graph *, uint32_t,
                                   uint32_t),
                      struct app_colls *c)
{
    for (uint32_t r = 0; r < g->n_ranks; r++)
        for (uint32_t i = 0; i < g->rank[r].n; i++)
            if (app_op_joins(&g->rank[r].op[i]))
                call(c, g, r, i);
}

static void coll_member(struct app_colls *c, const struct app_graph *g, uint32_t rank, uint32_t op)
{
    struct app_coll_all *a = &c->all[app_colls_of(c, &g->rank[rank].op[op])];

    c->member[a->first + a->n++] = (struct app_coll_member){rank, op};
}

/* Whether the group is there, and the rank in it; the place is asked for where it is said. */
static void member_check(struct app_graph *g, uint32_t rank, const struct app_op *op)
{
    char place[PLACE], group[64];

    if (!app_group_size(g, op->group))
        finding_note(&g->found, FINDING_NO_GROUP,
                     "%s: found a collective on %s, expected one that is defined",
                     app_graph_place(g, rank, op, place, PLACE),
                     group_text(g, op->group, group, sizeof(group)));
    else if (!app_group_has(g, op->group, rank))
        finding_note(&g->found, FINDING_NO_MEMBER,
                     "%s: found rank %u in a collective of %s, expected a member of it",
                     app_graph_place(g, rank, op, place, PLACE), rank,
                     group_text(g, op->group, group, sizeof(group)));
}

static const char *coll_text(const struct app_op *op, char *text, size_t size)
{
    int n = snprintf(text, size, "%s of %" PRIu64 " B", app_coll_name(op->coll), op->bytes);

    if (op->peer != APP_ANY && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", root %u", op->peer);
    return text;
}

static void coll_agree(struct app_graph *g, const struct app_coll_member *first,
                       const struct app_coll_member *m)
{
    const struct app_op *a = &g->rank[first->rank].op[first->op];
    const struct app_op *b = &g->rank[m->rank].op[m->op];
    char place[PLACE], found[80], expected[80];

    if (m != first && m->rank == m[-1].rank)
        finding_note(&g->found, FINDING_TWICE,
                     "%s: found rank %u in collective %u again, expected it once",
                     app_graph_place(g, m->rank, b, place, PLACE), m->rank, b->tag);
    if (a->coll != b->coll || a->bytes != b->bytes || a->peer != b->peer)
        finding_note(&g->found, FINDING_DISAGREE, "%s: found %s, expected the %s of rank %u",
                     app_graph_place(g, m->rank, b, place, PLACE),
                     coll_text(b, found, sizeof(found)), coll_text(a, expected, sizeof(expected)),
                     first->rank);
}

/* The first member of the group that is not among the collective's, which are in order of ranks. */
static uint32_t member_lacking(const struct app_graph *g, const struct app_colls *c,
                               const struct app_coll_all *a, uint32_t group)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < app_group_size(g, group); i++) {
        uint32_t rank = group == APP_WORLD ? i : g->group[group].sorted[i];

        if (!app_rank_known(g, rank))
            continue;
        while (at < a->n && c->member[a->first + at].rank < rank)
            at++;
        if (at == a->n || c->member[a->first + at].rank != rank)
            return rank;
    }
    return APP_ANY;
}

static void coll_check(struct app_graph *g, const struct app_colls *c, struct app_coll_all *a)
{
    const struct app_coll_member *first = &c->member[a->first];
    const struct app_op *op = &g->rank[first->rank].op[first->op];
    char place[PLACE], text[80];
    uint32_t lacks = member_lacking(g, c, a, op->group);

    a->whole = lacks == APP_ANY && app_group_size(g, op->group);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct app_coll_member *m = &c->member[a->first + i];

        member_check(g, m->rank, &g->rank[m->rank].op[m->op]);
        coll_agree(g, first, m);
    }
    if (lacks != APP_ANY)
        finding_note(&g->found, FINDING_LACKING,
                     "%s: found %s by %u ranks, expected the %u of its group: rank %u lacks it",
                     app_graph_place(g, first->rank, op, place, PLACE),
                     coll_text(op, text, sizeof(text)), a->n, app_group_size(g, op->group), lacks);
}

void app_colls_build(struct app_colls *c, struct app_graph *g)
{
    uint32_t sum = 0;
    size_t room = 0;

    *c = (struct app_colls){.n = 0};
    for (uint32_t r = 0; r < g->n_ranks; r++)
        for (uint32_t i = 0; i < g->rank[r].n; i++)
            if (app_op_joins(&g->rank[r].op[i]))
                coll_enter(c, &g->rank[r].op[i], &room);
    c->n = c->keys.n;
    c->member = enough_memory(c->n_members + 1, sizeof(*c->member));
    for (uint32_t i = 0; i < c->n; i++) {
        c->all[i].first = sum;
        sum += c->all[i].n;
        c->all[i].n = 0;
    }
    coll_each(g, coll_member, c);
    for (uint32_t i = 0; i < c->n; i++)
        coll_check(g, c, &c->all[i]);
}

void app_colls_free(struct app_colls *c)
{
    number_map_free(&c->keys);
    free(c->all);
    free(c->member);
}
