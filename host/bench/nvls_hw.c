/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/nvls_hw.h"

#include "aggregation/arith.h"
#include "host/bench/verify/layout.h"
#include "host/bench/verify/test_pattern.h"
#include "host/kernels/kernels.h"
#include "host/kernels/multicast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct nvls_hw {
    const struct perf_opts *o;
    struct multicast *m;
    struct test_pattern val;
    unsigned n;
    size_t recv; /* offset of the receive buffer in each GPU's memory, after the send buffer */
};

bool nvls_hw_has(enum dtype t, enum redop op)
{
    return kernel_multimem(op, t) != NULL;
}

/* Number of requested pairs of type and operation, and how many of them the GPUs have. */
static unsigned pairs(const struct perf_opts *o, unsigned *asked)
{
    unsigned has = 0;

    *asked = 0;
    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++) {
            bool one = (o->types >> t & 1) && (o->ops >> op & 1) && arith_valid(op, t);

            *asked += one;
            has += one && nvls_hw_has((enum dtype)t, (enum redop)op);
        }
    return has;
}

void nvls_hw_rest(const struct perf_opts *o, char *text)
{
    unsigned asked, has = pairs(o, &asked);

    if (has < asked)
        snprintf(text, OPT_ERR,
                 "%u of the %u requested pairs of type and operation, which multimem does not have",
                 asked - has, asked);
}

int nvls_hw_can(const struct perf_opts *o, unsigned nranks, char *err)
{
    char why[DEVICE_TEXT];
    unsigned asked;
    int rc;

    if (o->coll != COLL_ALLREDUCE) {
        snprintf(err, OPT_ERR, "found %s, expected all_reduce", coll_name(o->coll));
        return -ENOTSUP;
    }
    if (!pairs(o, &asked)) {
        snprintf(
            err, OPT_ERR,
            "found no type and operation that multimem has, expected sum of a float of 16 bits "
            "or more or of an integer of 32 or 64, or min or max of such, not of float or "
            "double");
        return -ENOTSUP;
    }
    rc = multicast_can(nranks, why);
    if (rc)
        snprintf(err, OPT_ERR, "%s", why);
    return rc;
}

int nvls_hw_open(struct nvls_hw **out, const struct perf_opts *o, unsigned nranks, char *err)
{
    struct nvls_hw *h = calloc(1, sizeof(*h));
    char why[DEVICE_TEXT] = "out of memory";
    int rc = h ? pattern_init(&h->val) : -ENOMEM;

    if (!rc) {
        h->o = o;
        h->n = nranks;
        h->recv = (o->max_bytes + MULTICAST_UNIT - 1) / MULTICAST_UNIT * MULTICAST_UNIT;
        rc = multicast_open(&h->m, nranks, 2 * h->recv, why);
    }
    if (rc) {
        snprintf(err, OPT_ERR, "%s", why);
        nvls_hw_close(h);
        return rc;
    }
    *out = h;
    return 0;
}

void nvls_hw_close(struct nvls_hw *h)
{
    if (!h)
        return;
    multicast_close(h->m);
    pattern_free(&h->val);
    free(h);
}

const char *nvls_hw_gpu(struct nvls_hw *h)
{
    return device_name(multicast_device(h->m, 0));
}

/* Requirements of every GPU; with check: those that are missing. */
static uint64_t nvls_hw_look(struct nvls_hw *h, const struct row *r, int place, bool check)
{
    uint64_t wrong = 0;

    for (unsigned i = 0; i < h->n; i++) {
        struct layout l = {.kind = r->coll,
                           .rank = i,
                           .nranks = h->n,
                           .count = r->count,
                           .in_place = place == IN_PLACE};
        uint8_t *send = multicast_memory(h->m, i), *recv = send + h->recv;

        h->val.device = multicast_device(h->m, i);
        pattern_set(&h->val, &l, r->type, r->op);
        if (check)
            wrong += pattern_check(&h->val, &l, send, recv);
        else
            pattern_prepare(&h->val, &l, send, recv);
    }
    return wrong;
}

static int nvls_hw_run(struct nvls_hw *h, const struct row *r, int place, unsigned times,
                       double *seconds)
{
    size_t src = place == IN_PLACE ? h->recv : 0;

    *seconds = 0;
    return times ? multicast_time(h->m, r->op, r->type, h->recv, src, r->count, times, seconds) : 0;
}

/* The requested number of operations, or fewer, but at least two, if they would exceed the time of
 * a run. */
static unsigned iters(const struct perf_opts *o, double warm_up)
{
    double one = o->warmup ? warm_up / o->warmup : 0;
    unsigned fit = one * o->iters > o->run_wall ? (unsigned)(o->run_wall / one) : o->iters;

    return fit >= 2 || o->iters < 2 ? fit : 2;
}

int nvls_hw_place(struct nvls_hw *h, struct row *r, int place, char *err)
{
    struct run_result *res = &r->run[place];
    double s;
    int rc;

    nvls_hw_look(h, r, place, false);
    rc = nvls_hw_run(h, r, place, h->o->warmup, &s);
    if (!rc) {
        res->iters = res->aggregated = iters(h->o, s);
        rc = nvls_hw_run(h, r, place, res->iters, &s);
        res->time_us = s / res->iters * 1e6;
    }
    if (!rc && h->o->check &&
        place == IN_PLACE) { /* fill again: the input is a sum of sums by now */
        nvls_hw_look(h, r, place, false);
        rc = nvls_hw_run(h, r, place, 1, &s);
    }
    if (!rc && h->o->check)
        res->wrong = nvls_hw_look(h, r, place, true);
    if (rc || multicast_error(h->m)) {
        const char *why = multicast_error(h->m);

        snprintf(err, OPT_ERR, "nvls-hw: %s", why ? why : strerror(-rc));
        return rc ? rc : -EIO;
    }
    res->checked = h->o->check;
    res->dilation = 1;
    res->fid = (struct fidelity){.ok = true, .needed = 1};
    res->valid = true;
    return 0;
}
