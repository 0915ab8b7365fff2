/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/job/oracle.h"

#include "base/assert.h"
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A small integer, exact in every type. */
static void put_small(void *buf, enum dtype t, size_t i, unsigned v)
{
    switch (t) {
    case DT_INT8:
    case DT_UINT8:
        ((uint8_t *)buf)[i] = v;
        break;
    case DT_INT16:
    case DT_UINT16:
        ((uint16_t *)buf)[i] = v;
        break;
    case DT_INT32:
    case DT_UINT32:
        ((uint32_t *)buf)[i] = v;
        break;
    case DT_INT64:
    case DT_UINT64:
        ((uint64_t *)buf)[i] = v;
        break;
    case DT_FP16:
        ((uint16_t *)buf)[i] = fp32_to_fp16(v);
        break;
    case DT_BF16:
        ((uint16_t *)buf)[i] = fp32_to_bf16(v);
        break;
    case DT_FP8_E4M3:
        ((uint8_t *)buf)[i] = fp32_to_fp8_e4m3(v);
        break;
    case DT_FP8_E5M2:
        ((uint8_t *)buf)[i] = fp32_to_fp8_e5m2(v);
        break;
    case DT_FP32_LOC:
        ((float *)buf)[2 * i] = v;
        ((uint32_t *)buf)[2 * i + 1] = v;
        break;
    case DT_INT32_LOC:
        ((uint32_t *)buf)[2 * i] = ((uint32_t *)buf)[2 * i + 1] = v;
        break;
    case DT_FP32:
        ((float *)buf)[i] = v;
        break;
    case DT_FP64:
        ((double *)buf)[i] = v;
        break;
    default:
        abort();
    }
}

/* Random bits; floats have a small exponent, so that sums and products of 16 stay finite. */
static void put_random(void *buf, enum dtype t, size_t i, uint64_t r)
{
    switch (t) {
    case DT_FP16: /* exponent 2^-2 .. 2^1 */
        ((uint16_t *)buf)[i] = (r & 0x83ff) | (13 + (r >> 32) % 4) << 10;
        break;
    case DT_BF16:
        ((uint16_t *)buf)[i] = (r & 0x807f) | (125 + (r >> 32) % 5) << 7;
        break;
    case DT_FP32: {
        uint32_t v = (r & 0x807fffff) | (uint32_t)(123 + (r >> 32) % 8) << 23;
        memcpy((char *)buf + 4 * i, &v, 4);
        break;
    }
    case DT_FP64: {
        uint64_t v = (r & 0x800fffffffffffffull) | (1019 + (r >> 32) % 8) << 52;
        memcpy((char *)buf + 8 * i, &v, 8);
        break;
    }
    case DT_FP8_E4M3: /* exponent 2^-2 .. 2^1, and 2^-1 .. 2^0 */
        ((uint8_t *)buf)[i] = (r & 0x87) | (5 + (r >> 32) % 4) << 3;
        break;
    case DT_FP8_E5M2:
        ((uint8_t *)buf)[i] = (r & 0x83) | (14 + (r >> 32) % 2) << 2;
        break;
    case DT_FP32_LOC: {
        uint32_t v[2] = {(r & 0x807fffff) | 127u << 23, (uint32_t)(r >> 40)};
        memcpy((char *)buf + 8 * i, v, 8);
        break;
    }
    default:
        memcpy((char *)buf + dtype_size(t) * i, &r, dtype_size(t));
    }
}

void oracle_fill(void *buf, enum dtype t, enum redop op, size_t count, unsigned rank,
                 unsigned nranks, uint64_t seed, bool any_order)
{
    uint64_t s = seed ^ (rank * 0x632be59bd9b4e019ull);

    for (size_t i = 0; i < count; i++) {
        uint64_t r = random_next(&s);

        if (op == OP_LAND || op == OP_LOR || op == OP_LXOR) /* a rank alone keeps what it has */
            put_small(buf, t, i, r % (nranks > 1 ? 3 : 2));
        else if (!any_order)
            put_random(buf, t, i, r);
        else if (op == OP_PROD) /* at most one factor of two in eight ranks */
            put_small(buf, t, i, (i + rank) % (nranks > 8 ? nranks : 8) == 0 ? 2 : 1);
        else if (t == DT_FP8_E4M3 || t == DT_FP8_E5M2) /* sums stay within 8 */
            put_small(buf, t, i, (i + rank) % nranks < 4 ? r % 2 : 0);
        else
            put_small(buf, t, i, r % 5);
    }
}

static int tree_node(const struct fabric *f, const struct fab_tree *t, const struct fab_members *m,
                     uint16_t node, enum dtype type, enum redop op, size_t count,
                     const void *const *in, void *out)
{
    struct fab_child ch[ARITH_MAX_INPUTS];
    const void *arg[ARITH_MAX_INPUTS];
    void *own[ARITH_MAX_INPUTS] = {0};
    unsigned n = fab_group_children(f, t, node, m, ch, ARITH_MAX_INPUTS);
    int rc = n ? 0 : -EINVAL;

    T_ASSERT(n <= ARITH_MAX_INPUTS, "an aggregation node has more children than inputs");
    for (unsigned i = 0; !rc && i < n; i++) {
        if (ch[i].is_member) {
            unsigned rank = 0; /* members are ranks in order of id */

            for (unsigned id = 0; id < ch[i].member; id++)
                rank += fab_members_has(m, id);
            arg[i] = in[rank];
            continue;
        }
        own[i] = malloc(count * dtype_size(type) + 1);
        rc = own[i] ? tree_node(f, t, m, ch[i].node, type, op, count, in, own[i]) : -ENOMEM;
        arg[i] = own[i];
    }
    if (!rc)
        arith_scalar(op, type)(out, arg, n, count);
    for (unsigned i = 0; i < n; i++)
        free(own[i]);
    return rc;
}

int oracle_tree(const struct fabric *f, const struct fab_tree *t, const struct fab_members *m,
                enum dtype type, enum redop op, size_t count, const void *const *in, void *out)
{
    enum redop inner = op == OP_AVG ? OP_SUM : op;
    int rc = tree_node(f, t, m, fab_group_top(f, t, m), type, inner, count, in, out);

    if (!rc && op == OP_AVG)
        arith_divide(out, type, fab_members_count(m), count);
    return rc;
}

void oracle_plain(enum dtype type, enum redop op, size_t count, unsigned nranks,
                  const void *const *in, void *out)
{
    arith_scalar(op == OP_AVG ? OP_SUM : op, type)(out, in, nranks, count);
    if (op == OP_AVG)
        arith_divide(out, type, nranks, count);
}

size_t oracle_in_count(const struct coll_args *a, unsigned rank, unsigned nranks)
{
    switch (a->kind) {
    case COLL_BARRIER:
        return 0;
    case COLL_BROADCAST:
        return rank == a->root ? a->count : 0;
    case COLL_SCATTER:
        return rank == a->root ? a->count * nranks : 0;
    case COLL_REDUCE_SCATTER:
    case COLL_ALLTOALL:
        return a->count * nranks;
    default:
        return a->count;
    }
}

size_t oracle_out_count(const struct coll_args *a, unsigned rank, unsigned nranks)
{
    switch (a->kind) {
    case COLL_BARRIER:
        return 0;
    case COLL_REDUCE:
        return rank == a->root ? a->count : 0;
    case COLL_GATHER:
        return rank == a->root ? a->count * nranks : 0;
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
        return a->count * nranks;
    default:
        return a->count;
    }
}

size_t oracle_expect(const struct coll_args *a, unsigned rank, unsigned nranks,
                     const void *const *in, const void *reduced, void *out)
{
    size_t bytes = oracle_out_count(a, rank, nranks) * dtype_size(a->type);
    size_t one = a->kind == COLL_BARRIER ? 0 : a->count * dtype_size(a->type);
    unsigned sparse = a->sparse ? a->sparse : nranks;
    char *to = out;

    T_ASSERT(rank < nranks && (!coll_rooted(a->kind) || a->root < nranks),
             "a result is requested of a rank or root outside of the job");
    if (!bytes)
        return 0;
    for (unsigned r = 0; r < nranks; r++) {
        const char *from = in[r];

        if (a->kind == COLL_ALLGATHER || a->kind == COLL_GATHER)
            memcpy(to + r * one, from, one);
        else if (a->kind == COLL_ALLTOALL && (rank + nranks - r) % nranks < sparse)
            memcpy(to + r * one, from + rank * one, one);
    }
    if (a->kind == COLL_REDUCE_SCATTER)
        memcpy(to, (const char *)reduced + rank * one, one);
    else if (coll_reduces(a->kind))
        memcpy(to, reduced, one);
    else if (a->kind == COLL_BROADCAST)
        memcpy(to, in[a->root], one);
    else if (a->kind == COLL_SCATTER)
        memcpy(to, (const char *)in[a->root] + rank * one, one);
    else if (a->kind == COLL_SENDRECV)
        memcpy(to, in[(rank + nranks - 1) % nranks], one);
    return bytes;
}

uint64_t oracle_wrong(const void *a, const void *b, enum dtype type, size_t count)
{
    unsigned sz = dtype_size(type);
    uint64_t wrong = 0;

    for (size_t i = 0; i < count; i++)
        wrong += memcmp((const char *)a + i * sz, (const char *)b + i * sz, sz) != 0;
    return wrong;
}
