/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/formats/nccl_log.h"

#include "trace/formats/trace_readers.h"
#include "trace/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct nccl_log *nccl_log_of(struct app_graph *g)
{
    if (!g->log)
        g->log = enough_memory(1, sizeof(*g->log));
    return g->log;
}

void nccl_log_free(struct nccl_log *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->n_all; i++)
        free(l->all[i].process);
    label_map_free(&l->names);
    label_map_free(&l->ids);
    number_map_free(&l->handles);
    number_map_free(&l->streams);
    free(l->process);
    free(l->comm);
    free(l->all);
    free(l->op);
    free(l);
}

/* Members that are seen; of a whole trace the others are noted. */
static void group_build(const struct nccl_log *l, struct app_graph *g, uint32_t id)
{
    const struct nccl_all *a = &l->all[id];
    uint32_t *rank = enough_memory(a->n + 1u, sizeof(*rank)), n = 0, twice, file = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        const struct nccl_process *p =
            a->process[i] == NCCL_NONE ? NULL : &l->process[a->process[i]];

        if (!p)
            continue;
        rank[n++] = p->rank;
        file = p->file;
    }
    if (n < a->n && !g->partial)
        finding_note(&g->found, FINDING_LACKING,
                     "%s: found %u ranks of communicator %u, expected its %u", g->file[file].name,
                     n, id, a->n);
    app_graph_group(g, id, rank, n, &twice);
    free(rank);
}

/* What a stream's next operation waits for: the one before, or all of a group of sends and receives. */
struct nccl_stream {
    uint32_t before;  /* what the group waits for; NCCL_NONE */
    uint32_t member;  /* the group's last operation, from which before_it[] leads to the others */
    uint32_t members; /* 0: there is none */
    uint32_t comm;
    uint64_t count;
    bool p2p;
};

struct nccl_build {
    const struct nccl_log *l;
    struct app_graph *g;
    struct nccl_stream *stream; /* by number, of all processes */
    uint32_t *tag;              /* by communicator, of one rank */
    uint32_t *before_it;        /* by operation of one rank */
    size_t room;
};

static int64_t build_op(struct nccl_build *b, const struct app_op *op)
{
    int64_t i = app_graph_op(b->g, op);

    if (i >= 0)
        GROW(b->before_it, (size_t)i + 1, &b->room);
    return i;
}

/* The group ends: what comes next waits for all of it. */
static int stream_close(struct nccl_build *b, struct nccl_stream *s, uint32_t line)
{
    struct app_op wait = {.line = line, .kind = APP_WAIT};
    int64_t i = s->member;

    if (s->members > 1) {
        i = build_op(b, &wait);
        if (i < 0)
            return (int)i;
        for (uint32_t k = s->member, left = s->members; left; left--, k = b->before_it[k])
            app_graph_dep(b->g, (uint32_t)i, k, false);
    }
    if (s->members)
        s->before = (uint32_t)i;
    s->members = 0;
    return 0;
}

static void stream_join(struct nccl_build *b, struct nccl_stream *s, uint32_t i)
{
    b->before_it[i] = s->member;
    s->member = i;
    s->members++;
    if (s->before == NCCL_NONE)
        return;
    app_graph_dep(b->g, i, s->before, false);
    b->g->repaired[REPAIR_STREAM_ORDER]++;
}

static void op_fill(struct nccl_build *b, const struct nccl_op *from, struct app_op *op)
{
    const struct nccl_all *a = &b->l->all[from->comm];
    bool rooted = from->coll == APP_BROADCAST || from->coll == APP_REDUCE ||
                  from->coll == APP_GATHER || from->coll == APP_SCATTER;

    *op = (struct app_op){.bytes = from->bytes,
                          .line = from->line,
                          .kind = from->kind,
                          .coll = from->coll,
                          .group = from->comm,
                          .stream =
                              (uint16_t)(from->stream < UINT16_MAX ? from->stream : UINT16_MAX)};
    op->peer = a->process[from->peer] == NCCL_NONE ? APP_RANKS_MOST
                                                   : b->l->process[a->process[from->peer]].rank;
    if (from->kind == APP_COLL) {
        op->tag = b->tag[from->comm]++;
        if (!rooted)
            op->peer = APP_ANY;
    } else {
        op->tag = from->comm;
    }
}

static int op_build(struct nccl_build *b, const struct nccl_op *from)
{
    struct nccl_stream *s = &b->stream[from->stream];
    bool p2p = from->kind != APP_COLL;
    struct app_op op;
    int64_t i;
    int rc = 0;

    if (!p2p || !s->p2p || s->comm != from->comm || s->count != from->count)
        rc = stream_close(b, s, from->line);
    s->p2p = p2p;
    s->comm = from->comm;
    s->count = from->count;
    op_fill(b, from, &op);
    i = rc ? rc : build_op(b, &op);
    if (i < 0)
        return (int)i;
    stream_join(b, s, (uint32_t)i);
    return 0;
}

static int process_build(struct nccl_build *b, const struct nccl_process *p, char *err)
{
    int rc = app_graph_rank(b->g, p->rank, p->file);

    if (rc) {
        snprintf(err, TRACE_ERR, "%s: found another process of rank %u, expected one",
                 b->g->file[p->file].name, p->rank);
        return -EINVAL;
    }
    for (uint32_t i = p->first; i != NCCL_NONE; i = b->l->op[i].next)
        b->tag[b->l->op[i].comm] = 0;
    for (uint32_t i = p->first; !rc && i != NCCL_NONE; i = b->l->op[i].next)
        rc = op_build(b, &b->l->op[i]);
    app_graph_rank_end(b->g);
    if (rc)
        snprintf(err, TRACE_ERR, "%s: found more than %u operations, expected fewer",
                 b->g->file[p->file].name, APP_OPS_MOST);
    return rc;
}

int nccl_log_build(struct nccl_log *l, struct app_graph *g, char *err)
{
    struct nccl_build b = {.l = l, .g = g};
    int rc = 0;

    b.stream = enough_memory(l->streams.n + 1u, sizeof(*b.stream));
    b.tag = enough_memory(l->n_all + 1u, sizeof(*b.tag));
    for (uint32_t i = 0; i < l->streams.n; i++)
        b.stream[i].before = NCCL_NONE;
    for (uint32_t i = 0; i < l->n_all; i++)
        group_build(l, g, i);
    for (uint32_t i = 0; !rc && i < l->n_processes; i++)
        if (l->process[i].rank != NCCL_NONE) {
            app_graph_ranks(g, l->process[i].world);
            rc = process_build(&b, &l->process[i], err);
        }
    free(b.stream);
    free(b.tag);
    free(b.before_it);
    return rc;
}
