/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text workloads of astra-sim 1 and SimAI: a policy, then layers of twelve columns. All ranks do the same,
 * so the graph has rank 0 alone, with its groups. A forward pass goes up the layers and a backward pass
 * down; communication of weight gradients is awaited at the end.
 */
#include "trace/grow.h"
#include "trace/formats/trace_readers.h"
#include "trace/formats/words_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LAYERS_MOST (1u << 24)
#define NONE        UINT32_MAX

enum { STREAM_COMPUTE = 1, STREAM_UPDATE = 3 };
enum { GROUP_TP, GROUP_DP, GROUP_EP, GROUP_DP_EP, GROUPS };
enum { PASS_FORWARD, PASS_INPUT, PASS_WEIGHT, PASSES };

static const char *const policies[] = {
    "DATA",
    "MODEL",
    "HYBRID_DATA_MODEL",
    "HYBRID_MODEL_DATA",
    "HYBRID_TRANSFORMER",
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
    "HYBRID_DLRM",
    "HYBRID_DLRM_ENHANCED",
    "HYBRID_CUSTOMIZED",
    "MICRO",
    "DISTRIBUTED_INFERENCE",
};
#define POLICIES (sizeof(policies) / sizeof(policies[0]))

static const struct {
    const char *word;
    enum app_coll coll;
} kinds[] = {
    {"ALLREDUCEALLTOALL", APP_ALL_REDUCE}, {"ALLREDUCE", APP_ALL_REDUCE},
    {"ALLTOALL", APP_ALL_TO_ALL},          {"ALLGATHER", APP_ALL_GATHER},
    {"REDUCESCATTER", APP_REDUCE_SCATTER}, {"BROADCAST", APP_BROADCAST},
};
static const struct {
    const char *suffix;
    unsigned group;
} suffixes[] = {{"_EP", GROUP_EP}, {"_DP_EP", GROUP_DP_EP}};

struct workload_phase {
    uint64_t ns, bytes;
    uint8_t coll;
    uint32_t group;
    bool joins; /* it has communication */
};

struct text_workload {
    struct app_graph *g;
    struct trace_input *in;
    struct words_line w;
    uint64_t tp, ep, pp, all; /* 0: not said */
    uint32_t group[GROUPS];   /* of the graph */
    uint32_t declared, tag;
    bool customized;
    struct workload_layer {
        struct workload_phase phase[PASSES];
        uint64_t update_ns;
        uint32_t line;
    } * layer;
    uint32_t n;
    size_t room;
};

bool text_workload_is(const char *at, size_t n)
{
    size_t word = 0;

    while (word < n && ((at[word] >= 'A' && at[word] <= 'Z') || at[word] == '_'))
        word++;
    if (word == n || !strchr(" \t\r\n", at[word]))
        return false;
    for (size_t i = 0; i < POLICIES; i++)
        if (strlen(policies[i]) == word && !memcmp(at, policies[i], word))
            return true;
    return false;
}

/* The next word, of this line or the next one with any. 0, 1: the file ends, or -errno. */
static int word_next(struct text_workload *t)
{
    if (t->w.word)
        words_next(&t->w);
    return t->w.word && *t->w.word ? 0 : words_line_next(&t->w, t->in, 0);
}

/* ---- the first line ---- */

static int option_number(struct text_workload *t, uint64_t most, uint64_t *to)
{
    words_next(&t->w);
    return words_number(&t->w, most, true, "a number behind the option", to);
}

/* "checkpoints: K l1 .. lK": what runs again does not say more of the trace. */
static int option_list(struct text_workload *t)
{
    uint64_t n = 0, layer;
    int rc = option_number(t, LAYERS_MOST, &n);

    for (uint64_t i = 0; !rc && i < n; i++)
        rc = words_number(&t->w, LAYERS_MOST, false, "the number of a layer", &layer);
    return rc;
}

static int option_read(struct text_workload *t)
{
    static const struct {
        const char *word;
        size_t offset; /* SIZE_MAX: it is read alone */
    } options[] = {
        {"model_parallel_NPU_group:", offsetof(struct text_workload, tp)},
        {"ep:", offsetof(struct text_workload, ep)},
        {"pp:", offsetof(struct text_workload, pp)},
        {"all_gpus:", offsetof(struct text_workload, all)},
        {"vpp:", SIZE_MAX},
        {"ga:", SIZE_MAX},
        {"pp_comm", SIZE_MAX},
        {"pp_comm:", SIZE_MAX},
        {"DLRM_LAST_BOTTOM_LAYER:", SIZE_MAX},
    };
    uint64_t v = 0;

    if (words_is(&t->w, "checkpoints:") || words_is(&t->w, "checkpoint_initiates:"))
        return option_list(t);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (words_is(&t->w, options[i].word))
            return option_number(t, options[i].offset == SIZE_MAX ? UINT64_MAX : APP_RANKS_MOST,
                                 options[i].offset == SIZE_MAX
                                     ? &v
                                     : (uint64_t *)(void *)((char *)t + options[i].offset));
    return words_number(&t->w, UINT64_MAX, true, "an option of the policy", &v);
}

/* n ranks from 0 on, `stride` apart. */
static void group_enter(struct text_workload *t, unsigned which, uint64_t n, uint64_t stride)
{
    uint32_t *rank, twice;

    if (!n || !stride || n > APP_RANKS_MOST || (n - 1) * stride >= APP_RANKS_MOST)
        return;
    rank = enough_memory(n, sizeof(*rank));
    for (uint32_t i = 0; i < n; i++)
        rank[i] = i * (uint32_t)stride;
    t->group[which] = t->g->n_groups;
    app_graph_group(t->g, t->g->n_groups, rank, (uint32_t)n, &twice);
    free(rank);
}

/* Groups of rank 0, where the options say how many ranks there are. */
static int groups_make(struct text_workload *t)
{
    uint64_t tp = t->tp ? t->tp : 1, pp = t->pp ? t->pp : 1, ep = t->ep ? t->ep : 1, dp;

    for (unsigned i = 0; i < GROUPS; i++)
        t->group[i] = APP_WORLD;
    t->g->alike = (uint32_t)(t->all ? t->all : tp);
    if (t->tp)
        group_enter(t, GROUP_TP, tp, 1);
    if (!t->all)
        return 0;
    dp = t->all / (tp * pp);
    if (!dp || t->all % (tp * pp) || dp % ep)
        return trace_refuse_at(t->in, "",
                               "line 1: found %" PRIu64 " GPUs, expected a multiple of "
                               "model_parallel_NPU_group %" PRIu64 ", pp %" PRIu64
                               " and ep %" PRIu64,
                               t->all, tp, pp, ep);
    group_enter(t, GROUP_DP, dp, t->all / dp);
    group_enter(t, GROUP_EP, ep, tp);
    group_enter(t, GROUP_DP_EP, dp / ep, tp * ep);
    return 0;
}

static int workload_head(struct text_workload *t)
{
    uint64_t n = 0;
    int rc = word_next(t);

    t->customized = !rc && words_is(&t->w, "HYBRID_CUSTOMIZED");
    if (!rc)
        words_next(&t->w);
    while (!rc && *t->w.word)
        rc = option_read(t);
    if (!rc)
        rc = groups_make(t);
    if (!rc)
        rc = words_line_next(&t->w, t->in, 0);
    if (!rc)
        rc = words_number(&t->w, LAYERS_MOST, false, "a number of layers", &n);
    t->declared = (uint32_t)n;
    if (!rc && *t->w.word)
        rc = words_refuse(&t->w, "the end of the line");
    return rc == 1 ? trace_refuse_at(t->in, "",
                                     "found the end of the file, expected a number of layers")
                   : rc;
}

/* ---- layers ---- */

static int column_number(struct text_workload *t, const char *expected, uint64_t *to)
{
    int rc = word_next(t);
    uint64_t v = 0;
    char *word = t->w.word;

    if (rc)
        return rc;
    for (; *word >= '0' && *word <= '9'; word++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(*word - '0'), &v))
            return words_refuse(&t->w, expected);
    if (*word || word == t->w.word)
        return words_refuse(&t->w, expected);
    *to = v;
    return 0;
}

/* "ALLGATHER_DP_EP"; what is no type is none, as simulators take it, and is noted. */
static void column_type(struct text_workload *t, unsigned pass, struct workload_phase *p)
{
    const char *word = t->w.word;
    unsigned group = pass == PASS_WEIGHT ? GROUP_DP : GROUP_TP;

    if (!strcmp(word, "NONE"))
        return;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !p->joins; i++) {
        size_t n = strlen(kinds[i].word);

        if (strncmp(word, kinds[i].word, n) != 0)
            continue;
        p->joins = !word[n];
        for (size_t k = 0; k < sizeof(suffixes) / sizeof(suffixes[0]); k++)
            if (!strcmp(word + n, suffixes[k].suffix)) {
                p->joins = true;
                group = suffixes[k].group;
            }
        p->coll = (uint8_t)kinds[i].coll;
        p->group = t->group[group];
    }
    if (!p->joins)
        finding_note(&t->g->found, FINDING_TYPE,
                     "%s:%u: found \"%.40s\", expected NONE or a collective", t->in->name,
                     t->in->line, word);
}

static int layer_phase(struct text_workload *t, unsigned pass, struct workload_phase *p)
{
    int rc = column_number(t, "a time of computation", &p->ns);

    if (!rc)
        rc = word_next(t);
    if (!rc)
        column_type(t, pass, p);
    return rc ? rc : column_number(t, "a size of communication", &p->bytes);
}

static int layer_read(struct text_workload *t)
{
    struct workload_layer l = {.line = t->in->line};
    int rc = word_next(t); /* the dependency, which nobody uses */

    for (unsigned pass = 0; !rc && pass < PASSES; pass++)
        rc = layer_phase(t, pass, &l.phase[pass]);
    if (!rc)
        rc = column_number(t, "the time of an update", &l.update_ns);
    if (!rc && t->customized)
        rc = word_next(t); /* the layer's policy */
    if (rc)
        return rc == 1 ? trace_refuse_at(t->in, "",
                                         "line %u: found the end of the file inside of layer "
                                         "%u, expected %d columns",
                                         t->in->line, t->n, t->customized ? 13 : 12)
                       : rc;
    GROW(t->layer, t->n + 1u, &t->room);
    t->layer[t->n++] = l;
    return 0;
}

static int layers_read(struct text_workload *t)
{
    int rc = 0, more;

    t->w.word = NULL;
    while (!rc && t->n < t->declared) {
        rc = word_next(t); /* the name */
        if (!rc)
            rc = layer_read(t);
    }
    more = rc ? rc : word_next(t);
    if (!more)
        return words_refuse(&t->w, "no more layers than the second line says");
    if (more < 0)
        return more;
    if (rc == 1)
        finding_note(&t->g->found, FINDING_COUNT,
                     "%s:2: found %u layers, expected the %u that it says", t->in->name, t->n,
                     t->declared);
    return rc == 1 ? 0 : rc;
}

/* ---- operations ---- */

/* An operation behind `after`; its number. */
static uint32_t op_enter(struct text_workload *t, const struct app_op *op, uint32_t after)
{
    int64_t i = app_graph_op(t->g, op);

    if (i > 0 && after != NONE)
        app_graph_dep(t->g, (uint32_t)i, after, false);
    return i < 0 ? NONE : (uint32_t)i;
}

/* Computation and communication of a phase; *done: the end of both. What is behind its computation. */
static uint32_t phase_ops(struct text_workload *t, const struct workload_layer *l, unsigned pass,
                          uint32_t after, uint32_t *done)
{
    const struct workload_phase *p = &l->phase[pass];
    struct app_op compute = {
        .line = l->line, .ns = p->ns, .kind = APP_COMPUTE, .stream = STREAM_COMPUTE};
    struct app_op coll = {.line = l->line,
                          .bytes = p->bytes,
                          .kind = APP_COLL,
                          .coll = p->coll,
                          .group = p->group,
                          .peer = APP_ANY,
                          .tag = t->tag};
    struct app_op update = {
        .line = l->line, .ns = l->update_ns, .kind = APP_COMPUTE, .stream = STREAM_UPDATE};

    after = op_enter(t, &compute, after);
    *done = after;
    if (!p->joins)
        return after;
    t->tag++;
    *done = op_enter(t, &coll, after);
    *done = op_enter(t, &update, *done);
    return after;
}

static void workload_ops(struct text_workload *t)
{
    uint32_t at = NONE, done, *weights = enough_memory(t->n + 1u, sizeof(*weights));
    struct app_op end = {.kind = APP_WAIT};

    for (uint32_t i = 0; i < t->n; i++) { /* forward: communication is awaited */
        phase_ops(t, &t->layer[i], PASS_FORWARD, at, &done);
        at = done;
    }
    for (uint32_t i = t->n; i-- > 0;) {
        phase_ops(t, &t->layer[i], PASS_INPUT, at, &done);
        at = phase_ops(t, &t->layer[i], PASS_WEIGHT, done, &weights[i]);
    }
    if (t->n) {
        end.line = t->layer[t->n - 1].line;
        at = op_enter(t, &end, at);
        for (uint32_t i = 0; i < t->n && at != NONE; i++)
            if (weights[i] != NONE)
                app_graph_dep(t->g, at, weights[i], false);
    }
    free(weights);
}

int text_workload_read(struct app_graph *g, struct trace_input *in, uint32_t rank)
{
    struct text_workload t = {.g = g, .in = in};
    int rc;

    (void)rank;
    g->format = "text workload";
    g->partial = true;
    rc = workload_head(&t);
    if (!rc)
        rc = layers_read(&t);
    if (!rc) {
        app_graph_rank(g, 0, app_graph_file(g, in->name, false));
        workload_ops(&t);
        app_graph_rank_end(g);
    }
    free(t.layer);
    return rc;
}
