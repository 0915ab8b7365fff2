/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a workload file. A mistake in a section skips the checks that need that section, so that
 * one mistake gives one error.
 */
#include "fabric/build.h"
#include "fabric/conf/workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a)      (sizeof(a) / sizeof((a)[0]))
#define AT(f)       offsetof(struct workload, f)
#define MAX_GPUS    1048576u
#define MAX_INT     0x7fffffffu
#define MAX_DEVICES 16

struct wreader {
    struct build b;
    struct workload *w;
};

static const struct key model_keys[] = {
    /* Layers of the transformer. Needed. */
    RANGE_KEY("layers", KEY_UINT, AT(layers), 1, 100000, NULL),
    /* Width of the model. Needed. */
    RANGE_KEY("d_model", KEY_UINT, AT(d_model), 1, 1u << 24, NULL),
    /* Width of the feed-forward block of layers without experts. Needed. */
    RANGE_KEY("d_ff", KEY_UINT, AT(d_ff), 1, 1u << 24, NULL),
    /* Heads of attention. Needed. */
    RANGE_KEY("heads", KEY_UINT, AT(heads), 1, 65536, NULL),
    /* Heads of keys and values, of grouped-query attention. Default: `heads`. */
    RANGE_KEY("kv_heads", KEY_UINT, AT(kv_heads), 1, 65536, NULL),
    /* Width of a head. Default: `d_model / heads`. */
    RANGE_KEY("head_dim", KEY_UINT, AT(head_dim), 1, 65536, NULL),
    /* Tokens of the vocabulary. Needed. */
    RANGE_KEY("vocabulary", KEY_UINT, AT(vocabulary), 1, MAX_INT, NULL),
    /* Whether the feed-forward block has three matrices instead of two. */
    PLAIN_KEY("gated", KEY_BOOL, AT(gated), "false"),
    /* Whether one matrix is for input and output embeddings. */
    PLAIN_KEY("tied", KEY_BOOL, AT(tied), "false"),
    /* Parameters of a layer's attention, where it is not four matrices. Default: from the heads.
     * */
    OWN_KEY("attention"),
    /* Experts of a layer. Default: none. */
    RANGE_KEY("experts", KEY_UINT, AT(experts), 1, 65536, NULL),
    /* How many of them a token goes to. Needed, with `experts`. */
    RANGE_KEY("experts_per_token", KEY_UINT, AT(top_k), 1, 65536, NULL),
    /* Nodes that hold a token's experts, at most. Default: any. */
    RANGE_KEY("nodes_per_token", KEY_UINT, AT(token_nodes), 1, 65536, NULL),
    /* Experts that every token goes to, beside those. */
    RANGE_KEY("shared_experts", KEY_UINT, AT(shared), 0, 65536, "0"),
    /* `d_ff` of an expert. Default: `d_ff`. */
    RANGE_KEY("expert_d_ff", KEY_UINT, AT(expert_d_ff), 1, 1u << 24, NULL),
    /* Layers without experts, of a model that has some. Default: 0. */
    RANGE_KEY("dense_layers", KEY_UINT, AT(dense_layers), 0, 100000, NULL),
};
static const struct key training_keys[] = {
    /* Type of arithmetic: `"bf16"`, `"fp16"`, `"fp8"` or `"fp4"`. */
    OWN_KEY_FROM("type", "bf16"),
    /* Type of transmitted data; also `"fp32"`. Default: `type`. */
    OWN_KEY("wire"),
    /* Tokens of a sequence. Needed. */
    RANGE_KEY("sequence", KEY_UINT, AT(sequence), 1, MAX_INT, NULL),
    /* Tokens of one step on all GPUs. Needed. */
    OWN_KEY("batch_tokens"),
    /* Tokens of the whole training, as `15e12`. Default: not stated. */
    OWN_KEY("tokens"),
    /* Share of the device's FLOP/s, above 0, as `0.41` or `"41%"`. Needed. */
    PLAIN_KEY("utilisation", KEY_SHARE, AT(utilisation), NULL),
};
static const struct key parallel_keys[] = {
    /* Tensor parallel; the product of `tp`, `dp` and `pp` is the number of GPUs. */
    RANGE_KEY("tp", KEY_UINT, AT(tp), 1, MAX_GPUS, "1"),
    /* Data parallel. */
    RANGE_KEY("dp", KEY_UINT, AT(dp), 1, MAX_GPUS, "1"),
    /* Pipeline parallel. */
    RANGE_KEY("pp", KEY_UINT, AT(pp), 1, MAX_GPUS, "1"),
    /* GPUs, of the `dp * tp` of a stage, that share the experts. */
    RANGE_KEY("ep", KEY_UINT, AT(ep), 1, MAX_GPUS, "1"),
    /* ZeRO stage; 3 is FSDP. */
    RANGE_KEY("zero", KEY_UINT, AT(zero), 0, 3, "0"),
    /* Of a step and replica; `dp * microbatches` divides `batch_tokens`. */
    RANGE_KEY("microbatches", KEY_UINT, AT(microbatches), 1, 1000000, "1"),
    /* Which ranks are neighbours: innermost first; with `ep`, `dp` comes right after `tp` where
     * both are more than 1. Default: `[ "tp", "dp", "pp" ]`. */
    OWN_KEY("order"),
    /* Of collectives by group, as `{ ep = "pxn"; dp = "ring"; }`. Default: the fastest by the
     * model. */
    OWN_KEY("algorithm"),
};
/* Takes any name: only the simulator knows which algorithms there are. */
static const struct key algorithm_keys[] = {
    /* Of tensor parallel groups, a name as of `--algo`. Default: the fastest by the model. */
    PLAIN_KEY("tp", KEY_NAME, AT(algorithm[WORK_GROUP_TP]), NULL),
    /* Of data parallel groups, a name as of `--algo`. Default: the fastest by the model. */
    PLAIN_KEY("dp", KEY_NAME, AT(algorithm[WORK_GROUP_DP]), NULL),
    /* Of groups that share experts, a name as of `--algo`. Default: the fastest by the model. */
    PLAIN_KEY("ep", KEY_NAME, AT(algorithm[WORK_GROUP_EP]), NULL),
    /* Of pipelines, a name as of `--algo`. Default: the fastest by the model. */
    PLAIN_KEY("pp", KEY_NAME, AT(algorithm[WORK_GROUP_PP]), NULL),
};
static const struct key top_keys[] = {
    /* In reports. Default: the file's stem. */
    PLAIN_KEY("name", KEY_NAME, AT(name), NULL),
    /* The GPU, `"a100"`, `"h100"`, `"h800"`, `"h200"`, `"b200"` or `"gb200"`. Needed. */
    OWN_KEY("device"),
    /* Group that is the shape of the transformer. Needed. */
    OWN_KEY("model"),
    /* Group on types, tokens and utilisation. Needed. */
    OWN_KEY("training"),
    /* Group on the placement on GPUs. Needed. */
    OWN_KEY("parallel"),
};

static const char *const type_names[] = {"fp32", "bf16", "fp16", "fp8", "fp4"};
static const enum dev_type types[] = {DEV_FP32, DEV_BF16, DEV_BF16, DEV_FP8, DEV_FP4};

/* A count that may exceed 32 bits: 15e12 or 15000000000000L. */
static void read_count(struct build *b, config_setting_t *g, const char *key, double *out)
{
    const config_setting_t *s = config_setting_get_member(g, key);
    int type = s ? config_setting_type(s) : CONFIG_TYPE_NONE;
    double v = type == CONFIG_TYPE_FLOAT ? config_setting_get_float(s)
               : type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64
                   ? (double)config_setting_get_int64(s)
                   : 0;

    if (s && v >= 1 && v <= 1e18)
        *out = v;
    else if (s)
        keys_expected(b, s, "a count of 1 or more, as 4194304 or 15e12");
}

static void read_type(struct build *b, config_setting_t *g, const char *key, enum dev_type *out)
{
    const config_setting_t *s = config_setting_get_member(g, key);
    int i = s ? keys_choice(b, s, type_names, LEN(types)) : -EINVAL;

    if (i >= 0)
        *out = types[i];
}

static enum dev_type initial_type(void)
{
    const char *name = keys_initial_of(training_keys, LEN(training_keys), "type");
    unsigned i = 0;

    while (i + 1 < LEN(types) && strcmp(type_names[i], name))
        i++;
    return types[i];
}

static void read_order(struct build *b, config_setting_t *g, enum work_axis *order)
{
    const config_setting_t *s = config_setting_get_member(g, "order");
    bool seen[WORK_AXES] = {false};
    unsigned n = s && config_setting_is_aggregate(s) ? (unsigned)config_setting_length(s) : 0,
             good = 0;

    for (unsigned i = 0; i < n && i < WORK_AXES; i++) {
        const char *text = config_setting_get_string_elem(s, (int)i);

        for (unsigned a = 0; a < WORK_AXES && text; a++)
            if (!strcmp(text, work_axis_name((enum work_axis)a)) && !seen[a]) {
                seen[a] = true;
                order[good++] = (enum work_axis)a;
            }
    }
    if (s && (n != WORK_AXES || good != WORK_AXES))
        keys_expected(b, s, "[ \"tp\", \"dp\", \"pp\" ] in any order, innermost first");
}

static void read_algorithms(struct build *b, config_setting_t *g, struct workload *w)
{
    config_setting_t *s = config_setting_get_member(g, "algorithm");

    if (!s)
        return;
    w->algorithm_line = (int)config_setting_source_line(s);
    if (config_setting_is_group(s))
        keys_read(b, s, algorithm_keys, LEN(algorithm_keys), w);
    else
        keys_expected(b, s, "a group, as algorithm = { ep = \"pxn\"; }");
}

/* A section of the file; NULL with an error if it is missing or not a group. */
static config_setting_t *section(struct build *b, config_setting_t *root, const char *name,
                                 const struct key *keys, unsigned n, void *out)
{
    config_setting_t *s = config_setting_get_member(root, name);

    if (!s)
        build_error(b, 0, "found no %s, expected a group %s = { ... }", name, name);
    else if (!config_setting_is_group(s))
        keys_expected(b, s, "a group { ... }");
    else {
        keys_read(b, s, keys, n, out);
        return s;
    }
    return NULL;
}

static void need(struct build *b, config_setting_t *s, const char *key)
{
    if (!config_setting_get_member(s, key))
        build_error(b, (int)config_setting_source_line(s), "found no %s, expected it in %s", key,
                    config_setting_name(s));
}

static void must_divide(struct build *b, int line, const char *what, uint64_t n, const char *part,
                        uint64_t by)
{
    if (n % by)
        build_error(b, line, "%s: found %llu, expected one that divides the %llu %s", part,
                    (unsigned long long)by, (unsigned long long)n, what);
}

static void check_experts(struct build *b, config_setting_t *s, struct workload *w)
{
    int line = (int)config_setting_source_line(s);

    if (!w->experts) {
        if (w->top_k || w->token_nodes || w->shared || w->expert_d_ff ||
            config_setting_get_member(s, "dense_layers"))
            build_error(b, line,
                        "found keys of experts, expected experts, how many a layer has, with them");
        w->dense_layers = w->layers;
        return;
    }
    if (!w->top_k)
        need(b, s, "experts_per_token");
    if (w->top_k > w->experts)
        build_error(b, line, "experts_per_token: found %u, expected at most the %u experts",
                    w->top_k, w->experts);
    if (w->dense_layers >= w->layers)
        build_error(b, line, "dense_layers: found %u, expected fewer than the %u layers",
                    w->dense_layers, w->layers);
    if (!w->expert_d_ff)
        w->expert_d_ff = w->d_ff;
}

static bool read_model(struct wreader *r, config_setting_t *root)
{
    static const char *const needed[] = {"layers", "d_model", "d_ff", "heads", "vocabulary"};
    struct build *b = &r->b;
    struct workload *w = r->w;
    unsigned before = b->errs->total;
    config_setting_t *s = section(b, root, "model", model_keys, LEN(model_keys), w);
    int line = s ? (int)config_setting_source_line(s) : 0;

    if (!s)
        return false;
    read_count(b, s, "attention", &w->attention);
    if (b->errs->total > before)
        return false;
    for (unsigned i = 0; i < LEN(needed); i++)
        need(b, s, needed[i]);
    if (b->errs->total > before)
        return false;
    if (!w->kv_heads)
        w->kv_heads = w->heads;
    must_divide(b, line, "heads", w->heads, "kv_heads", w->kv_heads);
    if (!w->head_dim) {
        must_divide(b, line, "of d_model", w->d_model, "heads", w->heads);
        w->head_dim = w->d_model / w->heads;
    }
    /* Queries and output, keys and values. */
    if (!(w->attention > 0))
        w->attention = 2.0 * w->d_model * w->head_dim * ((double)w->heads + w->kv_heads);
    check_experts(b, s, w);
    return b->errs->total == before;
}

static bool read_training(struct wreader *r, config_setting_t *root)
{
    static const char *const needed[] = {"sequence", "batch_tokens", "utilisation"};
    struct build *b = &r->b;
    struct workload *w = r->w;
    unsigned before = b->errs->total;
    config_setting_t *s = section(b, root, "training", training_keys, LEN(training_keys), w);
    double batch = 0;

    if (!s)
        return false;
    read_type(b, s, "type", &w->type);
    w->wire = w->type;
    read_type(b, s, "wire", &w->wire);
    read_count(b, s, "batch_tokens", &batch);
    read_count(b, s, "tokens", &w->tokens);
    if (b->errs->total > before)
        return false;
    for (unsigned i = 0; i < LEN(needed); i++)
        need(b, s, needed[i]);
    if (b->errs->total > before)
        return false;
    w->batch_tokens = (uint64_t)batch;
    if (batch > (double)w->batch_tokens)
        build_error(b, (int)config_setting_source_line(s),
                    "batch_tokens: found %g, expected whole tokens", batch);
    if (!(w->utilisation > 0))
        build_error(b, (int)config_setting_source_line(s),
                    "utilisation: found 0, expected a share above it, as 0.45 or \"45%%\"");
    return b->errs->total == before;
}

static bool read_parallel(struct wreader *r, config_setting_t *root)
{
    unsigned before = r->b.errs->total;
    config_setting_t *s = section(&r->b, root, "parallel", parallel_keys, LEN(parallel_keys), r->w);

    if (s) {
        read_order(&r->b, s, r->w->order);
        read_algorithms(&r->b, s, r->w);
    }
    /* Each is below 2^20: a product of two fits, one of three may not. */
    if (r->b.errs->total == before &&
        ((uint64_t)r->w->tp * r->w->dp > MAX_GPUS || workload_gpus(r->w) > MAX_GPUS))
        build_error(&r->b, (int)config_setting_source_line(s),
                    "found tp * dp * pp above %u, expected so many GPUs at most", MAX_GPUS);
    return r->b.errs->total == before;
}

static void read_device(struct wreader *r, config_setting_t *root)
{
    config_setting_t *s = config_setting_get_member(root, "device");
    const char *names[MAX_DEVICES];
    unsigned n = 0;
    int i;

    while (n < MAX_DEVICES && device_at(n)) {
        names[n] = device_at(n)->name;
        n++;
    }
    if (!s) {
        build_error(&r->b, 0, "found no device, expected device = \"h100\" or the like");
        return;
    }
    i = keys_choice(&r->b, s, names, n);
    if (i >= 0)
        r->w->device = device_at((unsigned)i);
}

/* Checks that need several sections. */
static void check_spread(struct build *b, config_setting_t *root, const struct workload *w)
{
    config_setting_t *s = config_setting_get_member(root, "parallel");
    int line = (int)config_setting_source_line(s);

    must_divide(b, line, "heads", w->heads, "tp", w->tp);
    must_divide(b, line, "of d_ff", w->d_ff, "tp", w->tp);
    if (w->pp > w->layers)
        build_error(b, line, "pp: found %u, expected at most the %u layers", w->pp, w->layers);
    if (w->ep > 1 && !w->experts)
        build_error(b, line, "ep: found %u, expected 1 for a model without experts", w->ep);
    else if (w->ep > 1) {
        must_divide(b, line, "experts", w->experts, "ep", w->ep);
        must_divide(b, line, "GPUs of a pipeline stage (dp * tp)", (uint64_t)w->dp * w->tp, "ep",
                    w->ep);
        if (w->tp > 1 && w->dp > 1 &&
            workload_stride(w, WORK_DP) != workload_stride(w, WORK_TP) * w->tp)
            build_error(b, line,
                        "order: found dp not right after tp, expected that with ep: "
                        "experts are spread over tp, then dp");
    }
    must_divide(b, line, "tokens of a batch", w->batch_tokens, "dp * microbatches",
                (uint64_t)w->dp * w->microbatches);
}

static void check_type(struct build *b, config_setting_t *root, const struct workload *w)
{
    const config_setting_t *s = config_setting_get_member(root, "device");

    if (!(device_flops(w->device, w->type) > 0))
        build_error(b, (int)config_setting_source_line(s),
                    "found type %s, expected one that the matrix units of %s have",
                    dev_type_name(w->type), w->device->name);
}

static void read_workload(struct wreader *r, config_setting_t *root)
{
    bool model, training, parallel;

    keys_default_name(r->b.path, r->w->name);
    keys_read(&r->b, root, top_keys, LEN(top_keys), r->w);
    read_device(r, root);
    model = read_model(r, root);
    training = read_training(r, root);
    parallel = read_parallel(r, root);
    if (training && r->w->device)
        check_type(&r->b, root, r->w);
    if (model && training && parallel)
        check_spread(&r->b, root, r->w);
}

int workload_load_string(struct workload *w, const char *text, const char *path,
                         struct fab_errors *errs)
{
    struct wreader r = {.b = {.errs = errs, .path = path}, .w = w};
    config_t c;

    *w = (struct workload){.type = initial_type(), .order = {WORK_TP, WORK_DP, WORK_PP}};
    keys_initial(model_keys, LEN(model_keys), w);
    keys_initial(parallel_keys, LEN(parallel_keys), w);
    snprintf(w->path, sizeof(w->path), "%s", path);
    errs->n = errs->total = 0;
    if (conf_parse(&r.b, text, &c)) {
        read_workload(&r, config_root_setting(&c));
        config_destroy(&c);
    }
    fab_errors_sort(errs);
    return build_failed(&r.b) ? -EINVAL : 0;
}

int workload_load(struct workload *w, const char *path, struct fab_errors *errs)
{
    char *text;
    int rc;

    errs->n = errs->total = 0;
    text = conf_text(path, "workload", errs);
    rc = text ? workload_load_string(w, text, path, errs) : -EINVAL;
    free(text);
    return rc;
}
