/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/launch/msg_read.h"

#include "aggregation/arith.h"
#include "collective/file/sched_file.h"
#include "host/bench/perf_options.h"
#include "host/bench/sampled.h"
#include "host/bench/verify/layout.h"

#include <errno.h>
#include <string.h>

int msg_read(const struct msg *m, void *body, size_t size)
{
    if (m->len != size)
        return -EPROTO;
    memcpy(body, m->body, size);
    return 0;
}

static void printable(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            *s = '?';
}

void msg_read_text(const struct msg *m, char *buf, size_t size)
{
    size_t n = m->len < size - 1 ? m->len : size - 1;

    if (n) /* the body of an empty message may be NULL */
        memcpy(buf, m->body, n);
    buf[n] = 0;
    printable(buf);
}

int msg_read_init(const struct msg *m, struct msg_init *in, uint16_t *host)
{
    size_t hosts;

    if (m->len < sizeof(*in))
        return -EPROTO;
    memcpy(in, m->body, sizeof(*in));
    hosts = m->len - sizeof(*in);
    if (!in->nranks || in->nranks > FAB_MAX_MEMBERS || in->rank >= in->nranks ||
        in->n_trees > COLL_TREES || in->n_policy > ALGO_SCHEDULE || in->gpu < BUFFER_HOST ||
        in->schedule > SCHED_FILE_BYTES || hosts != in->nranks * sizeof(*host))
        return -EPROTO;
    for (unsigned i = 0; i < in->n_policy; i++)
        if (in->policy[i] >= ALGO_SCHEDULE)
            return -EPROTO;
    memcpy(host, m->body + sizeof(*in), hosts);
    return 0;
}

int msg_read_prepare(const struct msg *m, unsigned nranks, uint64_t buf_bytes,
                     struct msg_prepare *p)
{
    uint64_t blocks;

    if (msg_read(m, p, sizeof(*p)) || p->coll >= COLL_KINDS || p->algo >= ALGO_COUNT ||
        p->type >= DT_COUNT || p->op >= OP_COUNT || p->root >= nranks || p->sparse > nranks ||
        (coll_reduces(p->coll) && !arith_valid(p->op, p->type)) ||
        (p->in_place && !coll_can_be_in_place(p->coll)))
        return -EPROTO;
    blocks = layout_blocks(p->coll, nranks, 0); /* blocks of the larger buffer */
    return p->count > buf_bytes / dtype_size(p->type) / blocks ? -E2BIG : 0;
}

int msg_read_check(const struct msg *m, uint64_t sample_bytes, struct msg_check *c)
{
    if (m->len < sizeof(*c))
        return -EPROTO;
    memcpy(c, m->body, sizeof(*c));
    return c->ways > SAMPLED_WAYS || m->len != sizeof(*c) + c->ways * sample_bytes ? -EPROTO : 0;
}

int msg_read_run(const struct msg *m, struct msg_run *run)
{
    return msg_read(m, run, sizeof(*run)) || !run->n || run->n > PERF_MAX_ITERS ? -EPROTO : 0;
}

int msg_read_done(const struct msg *m, const struct fabric *f, uint32_t iters, struct msg_done *d)
{
    if (m->len < sizeof(*d))
        return -EPROTO;
    memcpy(d, m->body, sizeof(*d));
    if (d->ops > iters || m->len != sizeof(*d) + d->ops * sizeof(int64_t) ||
        d->algo >= ALGO_COUNT || d->granted.trees > COLL_TREES || d->last_trees > COLL_TREES)
        return -EPROTO;
    for (unsigned i = 0; i < d->last_trees; i++)
        if (d->last_tree[i] >= f->n_trees)
            return -EPROTO;
    for (unsigned i = 0; i < d->granted.trees; i++)
        if (d->granted.tree[i] >= f->n_trees)
            return -EPROTO;
    d->memory[sizeof(d->memory) - 1] = 0;
    d->granted.why[sizeof(d->granted.why) - 1] = 0;
    d->fell_back[sizeof(d->fell_back) - 1] = 0;
    printable(d->memory);
    printable(d->granted.why);
    printable(d->fell_back);
    return 0;
}
