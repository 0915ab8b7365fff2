/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/app_sums.h"

#include "trace/grow.h"

#include <string.h>

static void sums_op(const struct app_graph *g, const struct app_op *op, struct app_sums *s)
{
    s->n[op->kind]++;
    s->bytes[op->kind] += op->bytes;
    s->ns[op->kind] += op->ns;
    s->marks += app_op_is_mark(g, op);
    if (op->kind == APP_COLL) {
        s->coll_n[op->coll]++;
        s->coll_bytes[op->coll] += op->bytes;
    }
    if (op->kind == APP_RECV)
        s->any += op->peer == APP_ANY || op->tag == APP_ANY;
}

/* The stream that computes longest. */
static void sums_busy(const struct app_rank *r, struct app_sums *s)
{
    uint32_t last = 0;
    uint64_t *busy;

    for (uint32_t i = 0; i < r->n; i++)
        last = r->op[i].stream > last ? r->op[i].stream : last;
    busy = enough_memory(last + 1u, sizeof(*busy));
    for (uint32_t i = 0; i < r->n; i++)
        if (r->op[i].kind == APP_COMPUTE)
            busy[r->op[i].stream] += r->op[i].ns;
    for (uint32_t k = 0; k <= last; k++)
        if (busy[k] > s->busy_ns) {
            s->busy_ns = busy[k];
            s->busy_stream = k;
        }
    free(busy);
}

void app_sums_of(const struct app_graph *g, uint32_t rank, struct app_sums *s)
{
    const struct app_rank *r = &g->rank[rank];

    *s = (struct app_sums){.deps = 0};
    for (uint32_t i = 0; i < r->n; i++)
        sums_op(g, &r->op[i], s);
    for (uint32_t i = 0; r->n && i < r->first[r->n]; i++)
        *(r->dep[i] & APP_AT_START ? &s->start_deps : &s->deps) += 1;
    if (s->n[APP_COMPUTE])
        sums_busy(r, s);
}

void app_sums_join(struct app_sums *s, const struct app_sums *of)
{
    for (unsigned k = 0; k < APP_KINDS; k++) {
        s->n[k] += of->n[k];
        s->bytes[k] += of->bytes[k];
        s->ns[k] += of->ns[k];
    }
    for (unsigned k = 0; k < APP_COLLS; k++) {
        s->coll_n[k] += of->coll_n[k];
        s->coll_bytes[k] += of->coll_bytes[k];
    }
    s->deps += of->deps;
    s->start_deps += of->start_deps;
    s->any += of->any;
    s->marks += of->marks;
    if (of->busy_ns > s->busy_ns) {
        s->busy_ns = of->busy_ns;
        s->busy_stream = of->busy_stream;
    }
}
