/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of combinations of options, and values that follow from them. */
#include "host/bench/perf_options.h"

#include "host/bench/buffer.h"

/* Whether --error applies: the type has ULPs, and the reduction is a sum. */
bool options_has_error(enum coll_kind k, enum dtype t, enum redop op)
{
    return coll_reduces(k) && dtype_is_float(t) && (op == OP_SUM || op == OP_AVG);
}

static int check_collective(struct perf_opts *o, char *err)
{
    bool can = false;

    if (o->sparse && o->coll != COLL_ALLTOALL) {
        snprintf(err, OPT_ERR, "-k: found %s, expected alltoall: no other collective is sparse",
                 coll_name(o->coll));
        return OPT_BAD;
    }
    if (o->place == PLACE_IN && (!coll_can_be_in_place(o->coll) || o->error)) {
        snprintf(err, OPT_ERR, "--place: found in, expected out: %s",
                 o->error ? "--error is measured there" : "the collective has no other");
        return OPT_BAD;
    }
    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++)
            can = can || ((o->types >> t & 1) && (o->ops >> op & 1) &&
                          options_has_error(o->coll, (enum dtype)t, (enum redop)op));
    if (buffer_by_name(o->mem, &o->gpu)) {
        snprintf(err, OPT_ERR, "--mem: found \"%.64s\", expected host, cuda or cuda:N", o->mem);
        return OPT_BAD;
    }
    if (o->error && o->gpu != BUFFER_HOST) {
        snprintf(err, OPT_ERR, "--error: found --mem %.64s, expected host", o->mem);
        return OPT_BAD;
    }
    if (o->error && !can) {
        snprintf(err, OPT_ERR,
                 "--error: found nothing to measure, expected sum or avg of a float type by "
                 "all_reduce, reduce or reduce_scatter");
        return OPT_BAD;
    }
    return OPT_OK;
}

/* Checks of several options: a missing end of the range follows the given one. */
static int check_range(struct perf_opts *o, char *err)
{
    const uint64_t dmin = 4096, dmax = 16u << 20;
    uint64_t sizes[2];

    if (!o->min_bytes)
        o->min_bytes = o->max_bytes && o->max_bytes < dmin ? o->max_bytes : dmin;
    if (!o->max_bytes)
        o->max_bytes = o->min_bytes > dmax ? o->min_bytes : dmax;
    if (o->min_bytes > o->max_bytes) {
        snprintf(err, OPT_ERR, "-b: found %llu, expected at most the %llu of -e",
                 (unsigned long long)o->min_bytes, (unsigned long long)o->max_bytes);
        return OPT_BAD;
    }
    if (o->step_bytes && o->factor) {
        snprintf(err, OPT_ERR, "found both -i and -f, expected one of them");
        return OPT_BAD;
    }
    if (!o->step_bytes && !o->factor)
        o->factor = 4;
    if (options_sizes(o, sizes, 0) > PERF_MAX_SIZES) {
        snprintf(err, OPT_ERR, "-i: found more than %d sizes, expected a larger step",
                 PERF_MAX_SIZES);
        return OPT_BAD;
    }
    return OPT_OK;
}

int perf_options_check(struct perf_opts *o, char *err)
{
    *err = 0;
    if (!o->conf) {
        snprintf(err, OPT_ERR, "found no CONF, expected the fabric's conf file");
        return OPT_BAD;
    }
    o->run_wall = o->max_wall > 0 ? o->max_wall / PERF_RUNS : PERF_RUN_WALL;
    o->max_wall = o->max_wall > 0 ? o->max_wall : PERF_ROW_WALL;
    return check_collective(o, err) ? OPT_BAD : check_range(o, err);
}

unsigned options_sizes(const struct perf_opts *o, uint64_t *bytes, unsigned max)
{
    unsigned n = 0;

    for (uint64_t b = o->min_bytes; b <= o->max_bytes && n <= PERF_MAX_SIZES; n++) {
        if (n < max)
            bytes[n] = b;
        b = o->factor ? b * o->factor : b + o->step_bytes;
    }
    return n;
}

size_t options_buffer(const struct perf_opts *o, unsigned nranks)
{
    size_t bytes = o->max_bytes;

    if (o->sparse) /* buffers have places also for blocks that are not sent */
        bytes = o->max_bytes / o->sparse * nranks + nranks * 8;
    return (bytes + 4096) & ~(size_t)4095;
}
