/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/tolerance.h"

#include "host/bench/verify/test_pattern.h"
#include "protocols/host/conf.h"

/* Distance of neighbouring numbers next to 1. */
static double epsilon(enum dtype t)
{
    switch (t) {
    case DT_FP16:
        return 0x1p-10;
    case DT_BF16:
        return 0x1p-7;
    case DT_FP32:
        return 0x1p-23;
    case DT_FP64:
        return 0x1p-52;
    default:
        return 0;
    }
}

/* A mean is divided and rounded at the rank; its magnitude is at most that of the inputs. */
double row_tolerance(const struct fabric *f, const struct row *r)
{
    const struct trib_protocol *p = coll_protocol(r->algo);
    double most = pattern_most(r->type, r->op, r->nranks, true), bound;
    int64_t key[TRIB_KEYS];

    if (!p || !p->bound || r->nranks < 2 || !coll_protocol_does(p, r->type, r->op))
        return 0;
    proto_conf(f, p, key);
    bound = p->bound(key, (enum trib_type)r->type,
                     r->op == OP_AVG ? TRIB_SUM : (enum trib_sum)r->op, r->nranks, most);
    if (!(bound > 0))
        return 0;
    return r->op == OP_AVG ? bound / r->nranks + most * epsilon(r->type) : bound;
}
