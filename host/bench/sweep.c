/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs every requested row, one algorithm after the other: predicts it, runs it by the sweep's
 * `place` callback, and prints it.
 */
#include "host/bench/sweep.h"
#include "host/bench/tolerance.h"

#include "base/assert.h"
#include "collective/file/sched_file.h"
#include "collective/protocol_trees.h"
#include "collective/topo.h"
#include "host/bench/nvls_hw.h"
#include "host/bench/result_rows.h"
#include "host/bench/result_table.h"
#include "host/bench/verify/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sweep_show(const struct sweep *s, const char *text)
{
    if (s->terminal)
        fprintf(stderr, "\r\033[K%s", text);
}

void sweep_granted(struct sweep *s, const struct coll_grant *g)
{
    s->granted = *g;
}

/* Aggregation slots of a window of this algorithm: as granted, else as requested. */
static uint32_t window_of(const struct sweep *s, enum coll_algo a)
{
    bool rails = a == ALGO_HIER_SHARP || a == ALGO_NVLS_SHARP || !s->granted.trees;
    uint32_t window = rails ? s->granted.rail : s->granted.window;

    return window ? window : s->o->window;
}

/* The trees that a protocol has not lost. If it has lost all, all count: another algorithm runs its
 * rows then, and the prediction shows what the protocol would have taken. */
static unsigned protocol_trees_left(const struct sweep *s, enum coll_algo a, uint16_t *left)
{
    unsigned lost = s->granted.protocol[a - ALGO_PROTOCOL], n = 0;
    struct protocol_trees t = {.n = s->n_trees};
    struct fab_members m;

    memcpy(t.tree, s->tree, sizeof(t.tree));
    if (lost && coll_protocol(a) && topo_members(s->fab, s->nranks, s->host_of_rank, &m, NULL))
        t = protocol_choose_trees(s->fab, coll_protocol(a), s->tree, s->n_trees, &m, COLL_TREES);
    for (unsigned k = 0; k < t.n; k++)
        if (!(lost >> k & 1))
            left[n++] = t.tree[k];
    if (n)
        return n;
    memcpy(left, t.tree, sizeof(t.tree));
    return t.n;
}

/* Predicts the row; for auto also chooses its algorithm. */
static int predict(struct sweep *s, struct row *r)
{
    struct coll_args a = row_args(r);
    /* Rails choose among all trees; the group of all ranks has those that it was granted. */
    bool few = s->granted.trees && r->algo == ALGO_SHARP;
    const uint16_t *tree = few ? s->granted.tree : s->tree;
    unsigned n_trees = few ? s->granted.trees : s->n_trees;
    uint16_t left[COLL_TREES];
    char why[OPT_ERR];
    int rc;

    if (coll_is_protocol(r->algo))
        n_trees = protocol_trees_left(s, r->algo, left), tree = left;
    a.send = &a; /* out of place: the model only compares the two */
    a.recv = r;
    if (!r->emulated) {
        a.algo = ALGO_NVLS;
        if (coll_predict_trees(s->fab, &a, s->nranks, s->host_of_rank, s->tree, s->n_trees,
                               s->o->window, &r->pred))
            r->pred = (struct coll_prediction){0};
        return 0;
    }
    if (r->chosen)
        rc = coll_auto(s->fab, &a, s->nranks, s->host_of_rank, tree, n_trees,
                       window_of(s, ALGO_SHARP), s->exist, &r->algo, &r->pred, r->why);
    else
        rc = coll_predict_trees(s->fab, &a, s->nranks, s->host_of_rank, tree, n_trees,
                                window_of(s, r->algo), &r->pred);
    if (!rc && r->pred.time_ps <= 0 && !coll_is_protocol(r->algo))
        r->pred.time_ps = 1; /* a single rank: nothing moves */
    if (rc) {
        snprintf(why, sizeof(why), "no prediction for %s %llu B: %s", row_asked_name(r),
                 (unsigned long long)r->bytes, strerror(-rc));
        if (s->job)
            s->abort_job(s, why);
        memcpy(s->cause, why, sizeof(s->cause));
    }
    return rc;
}

static void row_set_busiest(const struct sweep *s, struct row *r)
{
    if (r->pred.busiest_dirlink / 2 < s->fab->n_links)
        r->link_bps = s->fab->links[r->pred.busiest_dirlink / 2].rate_bps;
}

int sweep_instead(struct sweep *s, struct row *r, enum coll_algo now, struct coll_prediction *p)
{
    struct row like = *r;
    int rc;

    like.algo = now;
    like.chosen = false;
    rc = predict(s, &like);
    *p = like.pred;
    if (!rc && !r->run[OUT_OF_PLACE].valid) {
        r->pred = like.pred;
        row_set_busiest(s, r);
    }
    return rc;
}

static int hw_place(struct sweep *s, struct row *r, int place)
{
    char label[80];
    int rc;

    if (sweep_left_out(s, r, place))
        return 0;
    snprintf(label, sizeof(label), "%s %llu B %s %s", row_algo_name(r),
             (unsigned long long)r->bytes, row_type(r), row_op(r));
    sweep_show(s, label);
    rc = nvls_hw_place(s->hw, r, place, s->cause);
    if (rc && s->job)
        s->abort_job(s, s->cause);
    s->wrong += r->run[place].wrong;
    sweep_show(s, "");
    return rc;
}

bool sweep_left_out(const struct sweep *s, struct row *r, int place)
{
    if (s->ended && !r->run[place].valid && !*r->run[place].cut)
        snprintf(r->run[place].cut, sizeof(r->run[place].cut), "not run: the run ended before it");
    return s->ended;
}

/* Runs the row's places, out of place and in place, until one fails. */
static int run_places(struct sweep *s, struct row *r)
{
    int rc = 0;

    for (int place = 0; place < PLACES && !rc; place++) {
        bool asked = !s->o->place || (place == IN_PLACE) == (s->o->place == PLACE_IN);

        if (asked && (place == OUT_OF_PLACE || row_can_be_in_place(r)))
            rc = s->place(s, r, place);
    }
    return rc;
}

static bool sums_in_switches(const struct row *r)
{
    return coll_reduces(r->coll) &&
           (r->algo == ALGO_SHARP || r->algo == ALGO_HIER_SHARP || r->algo == ALGO_NVLS_SHARP);
}

static int add_row(struct sweep *s, enum coll_algo algo, uint64_t bytes, enum dtype type,
                   enum redop op)
{
    unsigned blocks = layout_blocks(s->o->coll, s->nranks, s->o->sparse);
    T_ASSERT(s->n_rows < s->max_rows, "the sweep has more rows than its options allow");
    struct row *r = &s->rows[s->n_rows];

    *r = (struct row){.coll = s->o->coll,
                      .algo = algo,
                      .chosen = algo == ALGO_AUTO,
                      .type = type,
                      .op = op,
                      .root = s->o->root,
                      .nranks = s->nranks,
                      .sparse = s->o->sparse,
                      .mm_self = s->o->mm_self,
                      .file = algo == ALGO_SCHEDULE ? s->o->file : NULL,
                      .emulated = !s->hw,
                      .staged = *s->memory && !s->hw};
    if (r->coll != COLL_BARRIER) {
        r->count = bytes / dtype_size(type) / blocks;
        if (!r->count)
            return 0; /* smaller than one element: nothing to run, as in nccl-tests */
    }
    r->bytes = r->count * dtype_size(type) * blocks;
    if (s->ended) {
        s->n_rows++;
        return run_places(s, r);
    }
    int rc = predict(s, r);
    if (rc)
        return rc;
    row_set_busiest(s, r);
    r->bound = row_tolerance(s->fab, r);
    r->until = sums_in_switches(r) ? s->fab->costs.agg_until_bytes : 0;
    s->n_rows++;
    rc = run_places(s, r);
    if (!rc || (rc == -ETIMEDOUT && *r->run[OUT_OF_PLACE].cut) || *r->run[IN_PLACE].cut)
        result_rows_print(stdout, r, s->o->wide); /* the last one, where --max-wall ended the job */
    if (s->row_done)
        s->row_done(s);
    if (rc) {
        s->ended = rc;
        run_places(s, r);
    }
    return rc;
}

bool sweep_wants(const struct sweep *s, enum dtype t, enum redop op)
{
    const struct perf_opts *o = s->o;

    if (o->coll == COLL_BARRIER)
        return t == 0 && op == 0;
    if (!(o->types & (1u << t)))
        return false;
    if (s->hw && !nvls_hw_has(t, op))
        return false;
    return coll_reduces(o->coll) ? (o->ops & (1u << op)) && arith_valid(op, t) : op == 0;
}

struct row sweep_largest(const struct sweep *s)
{
    uint64_t sizes[PERF_MAX_SIZES];
    unsigned n = options_sizes(s->o, sizes, PERF_MAX_SIZES);
    struct row r = {.coll = s->o->coll,
                    .root = s->o->root,
                    .nranks = s->nranks,
                    .sparse = s->o->sparse,
                    .mm_self = s->o->mm_self,
                    .file = s->o->file,
                    .type = DT_COUNT};

    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++)
            if (r.type == DT_COUNT && sweep_wants(s, (enum dtype)t, (enum redop)op)) {
                r.type = (enum dtype)t;
                r.op = (enum redop)op;
            }
    if (r.coll != COLL_BARRIER && r.type != DT_COUNT)
        r.count =
            sizes[n - 1] / dtype_size(r.type) / layout_blocks(s->o->coll, s->nranks, s->o->sparse);
    return r;
}

unsigned sweep_chosen(struct sweep *s)
{
    unsigned blocks = layout_blocks(s->o->coll, s->nranks, s->o->sparse), chosen = 0;
    uint64_t sizes[PERF_MAX_SIZES];
    unsigned n = options_sizes(s->o, sizes, PERF_MAX_SIZES);
    struct row r = sweep_largest(s);

    r.chosen = r.emulated = true;
    r.file = NULL;
    for (unsigned i = 0; i < n; i++) {
        r.count = sizes[i] / dtype_size(r.type) / blocks;
        r.algo = ALGO_AUTO;
        if (!predict(s, &r))
            chosen |= 1u << r.algo;
    }
    return chosen;
}

static int run_algo(struct sweep *s, enum coll_algo algo, const uint64_t *sizes, unsigned n_sizes)
{
    uint8_t types[OPTION_SET_MAX], ops[OPTION_SET_MAX];
    unsigned n_types = options_ordered(&s->o->type_order, (1u << DT_COUNT) - 1, types);
    unsigned n_ops = options_ordered(&s->o->op_order, (1u << OP_COUNT) - 1, ops);
    unsigned first = s->n_rows;

    if (!s->ended)
        result_rows_heads(stdout, algo == ALGO_SCHEDULE ? s->o->file->name : perf_algo_name(algo),
                          s->o->wide, *s->memory && !s->hw);
    for (unsigned i = 0; i < n_sizes; i++)
        for (unsigned t = 0; t < n_types; t++)
            for (unsigned op = 0; op < n_ops; op++) {
                int rc = 0;

                if (sweep_wants(s, (enum dtype)types[t], (enum redop)ops[op]))
                    rc = add_row(s, algo, sizes[i], (enum dtype)types[t], (enum redop)ops[op]);
                if (rc && !s->ended)
                    s->ended = rc;
            }
    if (!s->ended)
        table_footer(stdout, s->o->wide, s->dilation.adaptive ? s->o->max_wall : 0, s->rows + first,
                     s->n_rows - first);
    return s->ended;
}

/* Runs rows by this machine's GPUs, after all others, which do not fail if this cannot begin. */
static int run_hw_algo(struct sweep *s, const uint64_t *sizes, unsigned n)
{
    int (*place)(struct sweep *, struct row *, int) = s->place;
    int rc = nvls_hw_open(&s->hw, s->o, s->nranks, s->no_hw);

    if (rc && s->algos)
        return 0;
    if (rc) {
        snprintf(s->cause, sizeof(s->cause), "nvls-hw: %.*s", OPT_ERR - 16, s->no_hw);
        return rc;
    }
    table_gpus(stdout, s->o->wide, s->nranks, nvls_hw_gpu(s->hw));
    s->place = hw_place;
    rc = run_algo(s, PERF_NVLS_HW, sizes, n);
    s->place = place;
    nvls_hw_rest(s->o, s->no_hw);
    nvls_hw_close(s->hw);
    s->hw = NULL;
    return rc;
}

int sweep_run(struct sweep *s)
{
    uint64_t sizes[PERF_MAX_SIZES];
    unsigned n = options_sizes(s->o, sizes, PERF_MAX_SIZES);
    uint8_t algos[OPTION_SET_MAX];
    unsigned n_algos = options_ordered(&s->o->algo_order, s->algos, algos);

    if (s->o->coll == COLL_BARRIER)
        n = 1;
    s->max_rows = n * DT_COUNT * OP_COUNT * PERF_ALGOS;
    s->rows = calloc(s->max_rows, sizeof(*s->rows));
    if (!s->rows)
        return -ENOMEM;
    if (*s->memory)
        table_memory(stdout, s->o->wide, s->memory);
    table_granted(stdout, s->o->wide, &s->granted);
    int rc = 0;
    for (unsigned i = 0; i < n_algos; i++)
        rc = run_algo(s, (enum coll_algo)algos[i], sizes, n);
    if (!rc && s->by_hw)
        rc = run_hw_algo(s, sizes, n);
    if (!rc && *s->no_hw)
        table_left_out(stdout, s->o->wide, PERF_NVLS_HW, s->no_hw);
    if (!rc) {
        table_compare(stdout, s->rows, s->n_rows);
        table_error(stdout, s->rows, s->n_rows);
    }
    return rc;
}

void sweep_free(struct sweep *s)
{
    for (unsigned i = 0; i < s->n_rows; i++)
        for (int place = 0; place < PLACES; place++)
            op_times_free(&s->rows[i].run[place].times);
    free(s->rows);
    sampled_free(&s->sampled);
    s->rows = NULL;
}
