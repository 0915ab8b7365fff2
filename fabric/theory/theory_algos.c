/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/theory/cost_links.h"
#include "fabric/theory/theory.h"

#include <math.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* What decides which algorithms apply, about the levels that the members span. */
struct algo_shape {
    bool node, out;   /* there are NVSwitches; there are other levels */
    bool out_reduces; /* all other levels reduce */
    bool multimem;
    unsigned levels;
};

static struct algo_shape shape_of(const struct cost_levels *l, struct cost_axis a)
{
    struct algo_shape s = {.out_reduces = l->n && l->lv[l->n - 1].role != FAB_ROLE_NVSWITCH};

    for (unsigned i = 0; i < l->n; i++) {
        const struct cost_level *v = &l->lv[i];

        if (v->role != FAB_ROLE_NVSWITCH) /* even if all members are in one node: by their NICs */
            s.out_reduces &= v->reduces;
        if (cost_children(l, i, a) <= 1)
            continue;
        s.levels++;
        if (v->role == FAB_ROLE_NVSWITCH) {
            s.node = true;
            s.multimem = v->multimem;
        } else {
            s.out = true;
        }
    }
    return s;
}

struct algo {
    const char *name;
    /* How GPU nodes and the network beyond them take part: for steps, and for the form BY_LEVELS. */
    enum cost_way node, out;
    enum { BY_LEVELS, BY_RING, BY_RINGS, BY_HALVING, BY_FLAT_SHARP } form;
    enum cost_flows flows;
    bool (*there)(const struct algo_shape *s, struct cost_axis a);
};

static bool always(const struct algo_shape *s, struct cost_axis a)
{
    (void)a;
    return s->levels > 0;
}

static bool power_of_two(const struct algo_shape *s, struct cost_axis a)
{
    return s->levels > 0 && cost_steps_halving((unsigned)a.degree) > 0;
}

static bool hier(const struct algo_shape *s, struct cost_axis a)
{
    (void)a;
    return s->node && s->out;
}

static bool sharp(const struct algo_shape *s, struct cost_axis a)
{
    return s->out_reduces && a.inner == 1;
}

static bool nvls(const struct algo_shape *s, struct cost_axis a)
{
    (void)a;
    return s->node && !s->out && s->multimem;
}

static bool hier_sharp(const struct algo_shape *s, struct cost_axis a)
{
    (void)a;
    return s->node && s->out && s->out_reduces;
}

static bool nvls_sharp(const struct algo_shape *s, struct cost_axis a)
{
    return hier_sharp(s, a) && s->multimem;
}

static const struct algo reduce_algos[] = {
    {"ring", COST_ALL_REDUCE, COST_ALL_REDUCE, BY_RING, COST_FLOWS_RING, always},
    {"rings", COST_ALL_REDUCE, COST_ALL_REDUCE, BY_RINGS, COST_FLOWS_RINGS, hier},
    {"halving", COST_ALL_REDUCE, COST_ALL_REDUCE, BY_HALVING, COST_FLOWS_NONE, power_of_two},
    {"hier", COST_ALL_REDUCE, COST_ALL_REDUCE, BY_LEVELS, COST_FLOWS_RAILS, hier},
    {"sharp", COST_REDUCED, COST_REDUCED, BY_FLAT_SHARP, COST_FLOWS_SHARP, sharp},
    {"nvls", COST_REDUCED, COST_REDUCED, BY_LEVELS, COST_FLOWS_NONE, nvls},
    {"hier_sharp", COST_ALL_REDUCE, COST_REDUCED, BY_LEVELS, COST_FLOWS_TREES, hier_sharp},
    {"nvls_sharp", COST_REDUCED, COST_REDUCED, BY_LEVELS, COST_FLOWS_TREES, nvls_sharp},
};
static const struct algo gather_algos[] = {
    {"ring", COST_GATHER, COST_GATHER, BY_RING, COST_FLOWS_RING, always},
    {"rings", COST_GATHER, COST_GATHER, BY_RINGS, COST_FLOWS_RINGS, hier},
    {"hier", COST_GATHER, COST_GATHER, BY_LEVELS, COST_FLOWS_RAILS, hier},
};

static const struct collective {
    const char *name;
    const struct algo *algos;
    unsigned n;
} collectives[] = {{"all_reduce", reduce_algos, LEN(reduce_algos)},
                   {"all_gather", gather_algos, LEN(gather_algos)},
                   {"reduce_scatter", gather_algos, LEN(gather_algos)},
                   {"alltoall", NULL, 0}};

const char *model_collective(unsigned i)
{
    return i < LEN(collectives) ? collectives[i].name : NULL;
}

int model_uneven(const struct cost_levels *l, struct cost_axis a)
{
    for (unsigned i = 0; i < l->n; i++) {
        double d = cost_children(l, i, a);

        if (d > floor(d))
            return (int)i;
    }
    return -1;
}

static unsigned steps_of(const struct cost_levels *l, struct cost_axis a, const enum cost_way *way)
{
    unsigned n = 0, members = (unsigned)a.degree;

    for (unsigned i = 0; i < l->n; i++) {
        bool node = l->lv[i].role == FAB_ROLE_NVSWITCH;
        unsigned d = (unsigned)cost_children(l, i, a), m = node ? d : members;

        if (d <= 1)
            continue;
        n += way[i] == COST_REDUCED      ? 2 /* up and down */
             : way[i] == COST_ALL_REDUCE ? 2 * (m - 1)
                                         : m - 1;
        members = node ? members / d : 1; /* beyond the nodes one ring covers all levels */
    }
    return n;
}

/* Time with headers; 0: unknown. */
static double wire_of(const struct algo *g, const struct model_ask *ask, const struct model_row *r,
                      bool reduce)
{
    double bytes = (double)r->bytes;

    if (g->form == BY_RING)
        return cost_ring_wire(ask->links, &r->cost, r->steps, bytes / (double)ask->axis.degree);
    if (g->form == BY_FLAT_SHARP)
        return cost_sharp_wire(ask->links, &r->cost, bytes);
    return g->flows == COST_FLOWS_RAILS && reduce ? cost_hier_wire(ask->links, bytes) : 0;
}

static void theory_algos_run(const struct cost_levels *l, const struct algo *g,
                             const struct model_ask *ask, struct model_row *r)
{
    enum cost_way way[FAB_MAX_LEVELS];
    bool reduce = g->node != COST_GATHER,
         by_trees = g->flows == COST_FLOWS_TREES || g->flows == COST_FLOWS_SHARP;
    unsigned n = (unsigned)ask->axis.degree;

    for (unsigned i = 0; i < l->n; i++)
        way[i] = l->lv[i].role == FAB_ROLE_NVSWITCH ? g->node : g->out;
    r->steps = steps_of(l, ask->axis, way);
    r->cost = cost_through(l, ask->axis, (double)r->bytes, way);
    if (g->form == BY_RING || g->form == BY_RINGS) {
        r->cost =
            (g->form == BY_RING ? cost_ring : cost_rings)(l, ask->axis, (double)r->bytes, reduce);
        r->steps = cost_steps_ring(n) / (reduce ? 1 : 2);
    } else if (g->form == BY_HALVING) {
        r->cost = cost_halving(l, ask->axis, (double)r->bytes);
        r->steps = cost_steps_halving(n);
    } else if (g->form == BY_FLAT_SHARP) {
        r->cost = cost_flat_sharp(l, ask->axis, (double)r->bytes);
        r->steps -= shape_of(l, ask->axis).node && shape_of(l, ask->axis).out ? 2 : 0;
    }
    if (ask->links) /* a tree carries the vector once in each direction */
        cost_raise(ask->links, g->flows, (double)r->bytes * (reduce && !by_trees ? 2 : 1),
                   &r->cost);
    if (ask->links && ask->axis.inner == 1)
        r->wire_s = wire_of(g, ask, r, reduce);
}

static void bandwidths(struct model_row *r, double factor)
{
    r->algbw = r->cost.s > 0 ? (double)r->bytes / r->cost.s : 0;
    r->busbw = r->algbw * factor;
}

/* All messages are sent at once: on shared links they meet less often than those of pairwise exchange. */
static void alltoall_row(const struct cost_levels *l, const struct model_ask *ask, bool rails,
                         enum cost_sparsity s, struct model_row *r)
{
    static const char *const names[] = {"direct", "sparse", "drawn"};
    double n = (double)ask->axis.degree, all = (double)r->bytes * n;

    r->algo = rails ? "pxn" : names[s];
    r->collective = "alltoall";
    r->steps = (unsigned)ask->axis.degree - 1;
    r->cost = rails ? cost_alltoall_rails(l, ask->axis, all)
                    : cost_alltoall(l, ask->axis, all, s, ask->sparse);
    if (s == COST_SPARSE && ask->sparse < ask->axis.degree)
        r->steps = ask->sparse;
    if (ask->links && s == COST_DENSE) {
        enum cost_flows flows = rails ? COST_FLOWS_PXN : COST_FLOWS_DIRECT;

        cost_raise(ask->links, flows, all, &r->cost);
        r->wire_s = cost_wire(ask->links, flows, &r->cost, (double)r->bytes / n);
    }
    bandwidths(r, (n - 1) / n);
}

static unsigned alltoall(const struct cost_levels *l, const struct model_ask *ask, uint64_t bytes,
                         struct model_row *rows)
{
    unsigned most = ask->sparse ? 3 : 1, n = 0;
    struct algo_shape shape = shape_of(l, ask->axis);

    for (unsigned s = 0; s < most; s++, n++) {
        rows[n] = (struct model_row){.bytes = bytes};
        alltoall_row(l, ask, false, (enum cost_sparsity)s, &rows[n]);
    }
    if (hier(&shape, ask->axis)) {
        rows[n] = (struct model_row){.bytes = bytes};
        alltoall_row(l, ask, true, COST_DENSE, &rows[n++]);
    }
    return n;
}

unsigned model_rows(const struct cost_levels *l, const char *collective,
                    const struct model_ask *ask, uint64_t bytes, struct model_row *rows)
{
    struct algo_shape s = shape_of(l, ask->axis);
    double n = (double)ask->axis.degree;
    const struct collective *c = collectives;
    unsigned found = 0;

    while (c < collectives + LEN(collectives) && strcmp(c->name, collective))
        c++;
    if (c == collectives + LEN(collectives) || !s.levels)
        return 0;
    if (!c->algos)
        return alltoall(l, ask, bytes, rows);
    for (unsigned i = 0; i < c->n; i++) {
        struct model_row *r = &rows[found];

        if (!c->algos[i].there(&s, ask->axis))
            continue;
        *r = (struct model_row){.collective = c->name, .algo = c->algos[i].name, .bytes = bytes};
        theory_algos_run(l, &c->algos[i], ask, r);
        bandwidths(r, (c->algos == reduce_algos ? 2 : 1) * (n - 1) / n);
        found++;
    }
    return found;
}
