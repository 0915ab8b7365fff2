/* SPDX-License-Identifier: BSD-3-Clause */
/* The aggregation protocol's names and checks; used by aggregation nodes and by members. */
#include "aggregation/proto.h"

#include "base/assert.h"
#include "fabric/fabric.h"
#include "aggregation/arith.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *text;
} statuses[AGG_STATUS_COUNT] = {
#define X(n, t) [AGG_##n] = {#n, t},
    AGG_STATUS(X)
#undef X
};

const char *agg_status_name(enum agg_status s)
{
    return (unsigned)s < AGG_STATUS_COUNT ? statuses[s].name : "?";
}

const char *agg_status_text(enum agg_status s)
{
    return (unsigned)s < AGG_STATUS_COUNT ? statuses[s].text : "unknown status";
}

static const char *const types[] = {
    [AGG_JOIN] = "JOIN",
    [AGG_JOIN_REPLY] = "JOIN_REPLY",
    [AGG_LEAVE] = "LEAVE",
    [AGG_LEAVE_REPLY] = "LEAVE_REPLY",
    [AGG_ABORT] = "ABORT",
    [AGG_ABORT_ACK] = "ABORT_ACK",
    [AGG_PEER_DOWN] = "PEER_DOWN",
    [AGG_PROBE] = "PROBE",
    [AGG_PROBE_REPLY] = "PROBE_REPLY",
    [AGG_MM_BIND] = "MM_BIND",
    [AGG_MM_BIND_REPLY] = "MM_BIND_REPLY",
    [AGG_MM_READY] = "MM_READY",
    [AGG_MM_READY_REPLY] = "MM_READY_REPLY",
    [AGG_MM_UNBIND] = "MM_UNBIND",
    [AGG_MM_UNBIND_REPLY] = "MM_UNBIND_REPLY",
    [AGG_MM_ABORT] = "MM_ABORT",
    [AGG_MM_ABORT_ACK] = "MM_ABORT_ACK",
    [AGG_MM_MOVE] = "MM_MOVE",
    [AGG_MM_MOVE_REPLY] = "MM_MOVE_REPLY",
    [AGG_WINDOW] = "WINDOW",
};
#define TYPES (sizeof(types) / sizeof(types[0]))

const char *agg_type_name(unsigned type)
{
    return type < TYPES && types[type] ? types[type] : "?";
}

/* ---- lists of members ---- */

static unsigned next_member(const struct fab_members *m, unsigned from)
{
    while (from < FAB_MAX_MEMBERS && !fab_members_has(m, from))
        from++;
    return from;
}

/* Fills *s with the longest span from member `first` on, whose stride is the step to the next member. Returns
 * the member after the span. */
static unsigned span_of(const struct fab_members *m, unsigned first, struct agg_span *s)
{
    unsigned next = next_member(m, first + 1), stride = next - first, n = 1;

    for (; next < FAB_MAX_MEMBERS && next == first + n * stride; n++)
        next = next_member(m, next + 1);
    *s = (struct agg_span){.first = rte_cpu_to_be_16((uint16_t)first),
                           .count = rte_cpu_to_be_16((uint16_t)n),
                           .stride = rte_cpu_to_be_16((uint16_t)stride)};
    return next;
}

int agg_members_write(struct agg_ctl *c, const struct fab_members *m)
{
    unsigned n = 0, listed = 0;

    c->ranks_per_host = rte_cpu_to_be_16(m->ranks_per_host);
    c->n_spans = 0;
    if (next_member(m, AGG_BITS) == FAB_MAX_MEMBERS) {
        for (unsigned i = 0; i < AGG_BITS / 64; i++)
            c->bits[i] = rte_cpu_to_be_64(m->bits[i]);
        return 0;
    }
    for (unsigned id = next_member(m, 0); id < FAB_MAX_MEMBERS; n++) {
        if (n == AGG_SPANS)
            return -E2BIG;
        id = span_of(m, id, &c->span[n]);
        listed += rte_be_to_cpu_16(c->span[n].count);
    }
    T_ASSERT(listed == fab_members_count(m), "the spans of a message list other members");
    c->n_spans = rte_cpu_to_be_16((uint16_t)n);
    return 0;
}

int agg_members_read(const struct agg_ctl *c, struct fab_members *m)
{
    unsigned n = rte_be_to_cpu_16(c->n_spans), from = 0;

    memset(m, 0, sizeof(*m));
    m->ranks_per_host = rte_be_to_cpu_16(c->ranks_per_host);
    for (unsigned i = 0; !n && i < AGG_BITS / 64; i++)
        m->bits[i] = rte_be_to_cpu_64(c->bits[i]);
    for (unsigned i = 0; n <= AGG_SPANS && i < n; i++) {
        unsigned first = rte_be_to_cpu_16(c->span[i].first);
        unsigned count = rte_be_to_cpu_16(c->span[i].count);
        unsigned stride = rte_be_to_cpu_16(c->span[i].stride);

        if (first < from || !count || !stride || first >= FAB_MAX_MEMBERS ||
            count - 1 > (FAB_MAX_MEMBERS - 1 - first) / stride)
            return -EINVAL;
        for (unsigned k = 0; k < count; k++)
            fab_members_add(m, first + k * stride);
        from = first + 1;
    }
    return n <= AGG_SPANS ? 0 : -EINVAL;
}

enum agg_status agg_ctl_check(const void *p, uint32_t len)
{
    const struct agg_ctl *c = p;

    if (len < sizeof(*c) || c->magic != RTE_BE32(AGG_MAGIC))
        return AGG_E_PROTOCOL;
    if (c->version != AGG_VERSION)
        return AGG_E_VERSION;
    return c->type >= TYPES || !types[c->type] ? AGG_E_PROTOCOL : AGG_OK;
}

static enum agg_status proto_bad(const char **what, const char *field)
{
    *what = field;
    return AGG_E_PROTOCOL;
}

static bool may_be_empty(const struct agg_hdr *h)
{
    return h->coll == AGG_BROADCAST || (h->coll == AGG_REDUCE && h->type == AGG_RESULT);
}

enum agg_status agg_hdr_check(const struct agg_hdr *h, unsigned type, uint32_t mtu,
                              const char **what)
{
    uint64_t total = rte_be_to_cpu_64(h->total), offset = rte_be_to_cpu_64(h->offset);
    uint64_t left = total - offset, max = AGG_MSG_BYTES(mtu);

    T_ASSERT_HOT(mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0,
                 "an edge has an MTU that no path has");
    *what = "";
    if (h->version != AGG_VERSION)
        return proto_bad(what, "version");
    if (h->type != type)
        return proto_bad(what, "type");
    *what = "collective";
    if (h->coll < AGG_ALLREDUCE || h->coll > AGG_BARRIER)
        return AGG_E_OP_UNSUPPORTED;
    if (h->flags & ~AGG_F_EMPTY || (agg_is_empty(h) && !may_be_empty(h)))
        return proto_bad(what, "flags");
    if (h->root && h->coll != AGG_REDUCE && h->coll != AGG_BROADCAST)
        return proto_bad(what, "root");
    *what = "type of elements";
    if (h->dtype >= DT_COUNT)
        return AGG_E_OP_UNSUPPORTED;
    *what = "operation";
    if (!arith_valid(h->op, h->dtype) && (h->coll == AGG_ALLREDUCE || h->coll == AGG_REDUCE))
        return AGG_E_OP_UNSUPPORTED;
    if (total % dtype_size(h->dtype) || (h->coll == AGG_BARRIER && total))
        return proto_bad(what, "total");
    if (offset > total || offset % max || (total && offset == total))
        return proto_bad(what, "offset");
    if (rte_be_to_cpu_32(h->msg_len) != (left < max ? left : max))
        return proto_bad(what, "message length");
    *what = "";
    return AGG_OK;
}

static uint64_t hdr_end(const struct agg_hdr *h)
{
    return rte_be_to_cpu_64(h->offset) + rte_be_to_cpu_32(h->msg_len);
}

int agg_hdr_follows(const struct agg_hdr *prev, const struct agg_hdr *next)
{
    struct agg_hdr want = *prev;

    T_ASSERT_HOT(hdr_end(prev) <= rte_be_to_cpu_64(prev->total),
                 "a message was taken that ends behind its operation");
    if (hdr_end(prev) == rte_be_to_cpu_64(prev->total))
        return next->offset == 0;
    want.offset = rte_cpu_to_be_64(hdr_end(prev));
    want.msg_len = next->msg_len; /* agg_hdr_check() tests its value */
    return !memcmp(&want, next, sizeof(want));
}

static const char *coll_name(unsigned c)
{
    static const char *const names[] = {"?", "allreduce", "reduce", "broadcast", "barrier"};

    return c < sizeof(names) / sizeof(names[0]) ? names[c] : "?";
}

bool agg_hdr_same(const struct agg_hdr *a, const struct agg_hdr *b)
{
    struct agg_hdr x = *a;

    x.flags = (uint8_t)((x.flags & ~AGG_F_EMPTY) | (b->flags & AGG_F_EMPTY));
    return !memcmp(&x, b, sizeof(x));
}

int agg_hdr_differ(const struct agg_hdr *a, const struct agg_hdr *b, char *text, size_t size)
{
    const struct {
        const char *field;
        uint64_t a, b;
    } numbers[] = {
        {"operation number", rte_be_to_cpu_32(a->opseq), rte_be_to_cpu_32(b->opseq)},
        {"size", rte_be_to_cpu_64(a->total), rte_be_to_cpu_64(b->total)},
        {"offset", rte_be_to_cpu_64(a->offset), rte_be_to_cpu_64(b->offset)},
        {"message length", rte_be_to_cpu_32(a->msg_len), rte_be_to_cpu_32(b->msg_len)},
        {"root", rte_be_to_cpu_16(a->root), rte_be_to_cpu_16(b->root)},
    };

    if (agg_hdr_same(a, b))
        return 0;
    if (a->coll != b->coll)
        return snprintf(text, size, "collective: %s, %s", coll_name(a->coll), coll_name(b->coll));
    if (a->dtype != b->dtype)
        return snprintf(text, size, "type: %s, %s", dtype_name(a->dtype), dtype_name(b->dtype));
    if (a->op != b->op)
        return snprintf(text, size, "operation: %s, %s", redop_name(a->op), redop_name(b->op));
    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].a != numbers[i].b)
            return snprintf(text, size, "%s: %" PRIu64 ", %" PRIu64, numbers[i].field, numbers[i].a,
                            numbers[i].b);
    return snprintf(text, size, "header");
}
