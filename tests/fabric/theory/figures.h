/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of the table of reference figures (F1 to F59), computed from presets and the table of
 * devices. A row accepts 1 %, or the digits that the table prints.
 */
#ifndef TRIB_TESTS_FABRIC_THEORY_FIGURES_H
#define TRIB_TESTS_FABRIC_THEORY_FIGURES_H

#include "fabric/theory/cost.h"
#include "fabric/theory/roofline.h"
#include "tests/fabric/load.h"
#include "tests/fabric/device_named.h"

#include <math.h>

#define NEAR(is, want)           near_figure(#is, is, want, 0.01)
#define WITHIN(is, want, within) near_figure(#is, is, want, within)

static inline void near_figure(const char *what, double is, double want, double within)
{
    if (!(fabs(is - want) <= within * fabs(want)))
        fail_msg("%s: %.6g, expected %.6g", what, is, want);
}

static inline struct fabric *preset(const char *name)
{
    char path[96];

    snprintf(path, sizeof(path), "conf/%s.conf", name);
    return load_file(path);
}

static inline struct cost_levels levels_of(const char *name)
{
    struct fabric *f = preset(name);
    struct cost_levels l;

    cost_levels(f, &l);
    fabric_free(f);
    return l;
}

static inline struct workload workload_of(const char *name)
{
    static struct fab_errors errs;
    struct workload w;
    char path[96];

    snprintf(path, sizeof(path), "conf/workloads/%s.conf", name);
    if (workload_load(&w, path, &errs))
        fail_msg("%s was refused", path);
    return w;
}

static inline const struct gpu_device *device(const char *name)
{
    const struct gpu_device *d = device_find(name);

    assert_non_null(d);
    return d;
}

static inline struct cost_axis all(uint64_t degree)
{
    return (struct cost_axis){1, degree};
}

/* The same way at every level. */
static inline struct cost collective(const struct cost_levels *l, struct cost_axis a, double bytes,
                                     enum cost_way way)
{
    enum cost_way ways[FAB_MAX_LEVELS];

    for (unsigned i = 0; i < FAB_MAX_LEVELS; i++)
        ways[i] = way;
    return cost_collective(l, a, bytes, ways);
}

#endif
