/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/formats/chakra_rank.h"

#include "trace/grow.h"
#include "trace/formats/trace_readers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STREAM_HOST, STREAM_DEVICE, STREAM_COMM, STREAM_RECV };

#define TYPE_COLL 7

static const struct chakra_type {
    enum app_kind kind;
    uint16_t stream;
} types[TYPE_COLL + 1] = {
    {APP_WAIT, STREAM_HOST},   /* INVALID */
    {APP_WAIT, STREAM_HOST},   /* METADATA */
    {APP_COPY, STREAM_DEVICE}, /* MEM_LOAD */
    {APP_COPY, STREAM_DEVICE}, /* MEM_STORE */
    {APP_COMPUTE, STREAM_DEVICE}, {APP_SEND, STREAM_COMM},
    {APP_RECV, STREAM_RECV},      {APP_COLL, STREAM_COMM},
};

static const enum app_coll colls[] = {
    APP_ALL_REDUCE, APP_REDUCE,     APP_ALL_GATHER,     APP_GATHER,         APP_SCATTER,
    APP_BROADCAST,  APP_ALL_TO_ALL, APP_REDUCE_SCATTER, APP_REDUCE_SCATTER, APP_BARRIER,
};
#define COLLS (sizeof(colls) / sizeof(colls[0]))

int chakra_refuse(struct chakra_rank *c, uint32_t record, const char *fmt, ...)
{
    char place[48], text[TRACE_ERR];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(place, sizeof(place), "rank %u, record %u", c->rank, record);
    return trace_refuse_at(c->in, place, "%s", text);
}

int chakra_rank_begin(struct chakra_rank *c, struct app_graph *g, struct trace_input *in,
                      uint32_t rank)
{
    int rc;

    *c = (struct chakra_rank){.g = g, .in = in, .rank = rank};
    rc = app_graph_rank(g, rank, app_graph_file(g, in->name, true));
    if (rc)
        return trace_refuse_at(in, "", "found rank %u %s, expected %s", rank,
                               rc == -EEXIST ? "again" : "in its name",
                               rc == -EEXIST ? "a file of each rank" : "one below 1048576");
    c->open = true;
    return 0;
}

/* "0" and "" are all ranks, where no file says otherwise. */
static uint32_t node_group(struct chakra_rank *c, const struct chakra_node *n)
{
    bool world = !n->group || !n->group_n || (n->group_n == 1 && n->group[0] == '0');
    uint32_t group;

    if (n->group && app_graph_group_find(c->g, n->group, n->group_n, &group))
        return group;
    return world ? APP_WORLD : app_graph_group_new(c->g, n->group, n->group_n);
}

static void node_coll(struct chakra_rank *c, const struct chakra_node *n, struct app_op *op)
{
    op->peer = APP_ANY;
    op->group = node_group(c, n);
    op->coll = n->comm_type < COLLS && !n->cpu ? colls[n->comm_type] : APP_UNTYPED;
    c->g->repaired[REPAIR_LOCAL] += op->coll == APP_UNTYPED;
}

static int node_message(struct chakra_rank *c, const struct chakra_node *n, uint32_t record,
                        struct app_op *op)
{
    uint64_t own = op->kind == APP_SEND ? n->src : n->dst;
    uint64_t peer = op->kind == APP_SEND ? n->dst : n->src;
    const char *which = op->kind == APP_SEND ? "comm_dst" : "comm_src";

    if (peer >= APP_RANKS_MOST)
        return peer == CHAKRA_NO_TYPE
                   ? chakra_refuse(c, record, "found no %s, expected a rank", which)
                   : chakra_refuse(c, record, "found %s %" PRIu64 ", expected a rank", which, peer);
    if (own != CHAKRA_NO_TYPE && own != c->rank)
        return chakra_refuse(c, record, "found a message of rank %" PRIu64 ", expected rank %u",
                             own, c->rank);
    op->peer = (uint32_t)peer;
    op->tag = n->tag == CHAKRA_NO_TYPE ? 0 : (uint32_t)n->tag;
    return 0;
}

static int node_enter(struct chakra_rank *c, uint64_t id, const struct app_op *op, uint32_t record)
{
    uint32_t known = c->ids.n;

    if (number_map_enter(&c->ids, id, 0) != known)
        return chakra_refuse(c, record, "found id %" PRIu64 " again, expected another", id);
    return app_graph_op(c->g, op) < 0
               ? chakra_refuse(c, record, "found operation %u, expected fewer", APP_OPS_MOST)
               : 0;
}

int chakra_rank_node(struct chakra_rank *c, const struct chakra_node *n, uint32_t record)
{
    struct app_op op = {.line = record, .bytes = n->bytes};
    int rc = 0;

    if (n->type > TYPE_COLL)
        return chakra_refuse(c, record, "found type %" PRIu64 ", expected 0 to %d", n->type,
                             TYPE_COLL);
    op.kind = (uint8_t)types[n->type].kind;
    op.stream = n->cpu ? STREAM_HOST : types[n->type].stream;
    if (__builtin_mul_overflow(n->duration_us, 1000u, &op.ns))
        return chakra_refuse(c, record, "found a duration of %" PRIu64 " us, expected less",
                             n->duration_us);
    if (op.kind == APP_COMPUTE)
        op.bytes = 0;
    if (op.kind == APP_COLL)
        node_coll(c, n, &op);
    else if (op.kind == APP_SEND || op.kind == APP_RECV)
        rc = node_message(c, n, record, &op);
    return rc ? rc : node_enter(c, n->id, &op, record);
}

void chakra_rank_data(struct chakra_rank *c, uint64_t id)
{
    GROW(c->data, c->n_data + 1, &c->data_room);
    c->data[c->n_data++] = (struct chakra_wait){app_graph_rank_ops(c->g) - 1, id};
}

void chakra_rank_ctrl(struct chakra_rank *c, uint64_t id)
{
    GROW(c->ctrl, c->n_ctrl + 1, &c->ctrl_room);
    c->ctrl[c->n_ctrl++] = (struct chakra_wait){app_graph_rank_ops(c->g) - 1, id};
}

/* ---- what the ids say, when all are there ---- */

static void rank_wait(struct chakra_rank *c, const struct chakra_wait *w)
{
    uint32_t on = number_map_find(&c->ids, w->on, 0);

    c->g->repaired[REPAIR_ABSENT] += on == NUMBER_NONE;
    if (on != NUMBER_NONE)
        app_graph_dep(c->g, w->waits, on, false);
    else
        finding_note(&c->g->found, FINDING_DEPENDENCY,
                     "%s: rank %u, record %u: found a dependency on id %" PRIu64
                     ", expected the id of a node",
                     c->in->name, c->rank, app_graph_rank_op(c->g, w->waits)->line, w->on);
}

/* Data dependencies; where the rank has none at all, as of converters of 2023, control dependencies. */
static void rank_waits(struct chakra_rank *c)
{
    bool by_ctrl = !c->n_data;
    const struct chakra_wait *w = by_ctrl ? c->ctrl : c->data;
    size_t n = by_ctrl ? c->n_ctrl : c->n_data;

    for (size_t i = 0; i < n; i++)
        rank_wait(c, &w[i]);
    c->g->repaired[by_ctrl ? REPAIR_CONTROL : REPAIR_CONTROL_LEFT] += c->n_ctrl;
}

struct by_id {
    uint64_t id;
    uint32_t op;
};

static int id_compare(const void *a, const void *b)
{
    const struct by_id *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

/* Numbers the collectives of each group. */
static void rank_colls(struct chakra_rank *c)
{
    uint32_t n = app_graph_rank_ops(c->g), m = 0, *next = NULL;
    struct by_id *by = enough_memory(n + 1u, sizeof(*by));
    struct number_map groups = {.n = 0};
    size_t room = 0;

    for (uint32_t i = 0; i < n; i++)
        if (app_graph_rank_op(c->g, i)->kind == APP_COLL)
            by[m++] = (struct by_id){c->ids.key[i].a, i};
    qsort(by, m, sizeof(*by), id_compare);
    for (uint32_t i = 0; i < m; i++) {
        struct app_op *op = app_graph_rank_op(c->g, by[i].op);
        uint32_t known = groups.n, group;

        if (op->coll == APP_UNTYPED)
            continue;
        group = number_map_enter(&groups, op->group, 0);
        GROW(next, groups.n, &room);
        if (group == known)
            next[group] = 0;
        op->tag = next[group]++;
    }
    number_map_free(&groups);
    free(next);
    free(by);
}

void chakra_rank_end(struct chakra_rank *c)
{
    if (c->open) {
        rank_waits(c);
        rank_colls(c);
        app_graph_rank_end(c->g);
    }
    number_map_free(&c->ids);
    free(c->data);
    free(c->ctrl);
}
