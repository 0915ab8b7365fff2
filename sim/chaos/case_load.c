/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a chaos case from a file. Stops at the first mistake. */
#include "collective/sched.h"
#include "fabric/build.h"
#include "sim/chaos/case.h"

#include <errno.h>
#include <libconfig.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct case_reader {
    struct chaos_case *k;
    const char *path, *text;
    char *why; /* CHAOS_TEXT bytes */
    int rc;
};

static void mistake(struct case_reader *r, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void mistake(struct case_reader *r, int line, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (r->rc)
        return;
    r->rc = -EINVAL;
    n = snprintf(r->why, CHAOS_TEXT, "%.200s:%d: ", r->path, line);
    va_start(ap, fmt);
    vsnprintf(r->why + n, CHAOS_TEXT - (size_t)n, fmt, ap);
    va_end(ap);
}

static int line_of(const config_setting_t *s)
{
    return (int)config_setting_source_line(s);
}

/* Absent: 0. */
static uint64_t case_reader_number(struct case_reader *r, config_setting_t *g, const char *key,
                                   uint64_t max)
{
    config_setting_t *s = config_setting_get_member(g, key);
    int type = s ? config_setting_type(s) : CONFIG_TYPE_NONE;
    long long v = s ? config_setting_get_int64(s) : 0;

    if (s &&
        ((type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64) || v < 0 || (uint64_t)v > max)) {
        mistake(r, line_of(s), "%s: expected a whole number up to %llu", key,
                (unsigned long long)max);
        return 0;
    }
    return (uint64_t)v;
}

static const char *text(struct case_reader *r, config_setting_t *g, const char *key)
{
    config_setting_t *s = config_setting_get_member(g, key);
    const char *v = s ? config_setting_get_string(s) : NULL;

    if (!v)
        mistake(r, s ? line_of(s) : line_of(g), "found no %s, expected %s = \"...\"", key, key);
    return v ? v : "";
}

/* Reads a string such as "0x123": 64 unsigned bits, which libconfig's numbers do not have. */
static uint64_t bits_read(struct case_reader *r, config_setting_t *g, const char *key)
{
    const char *v = text(r, g, key);
    char *end;
    uint64_t n = strtoull(v, &end, 0);

    if (!*v || *end)
        mistake(r, line_of(g), "%s: found \"%.40s\", expected a number such as \"0x2a\"", key, v);
    return n;
}

static bool flag(config_setting_t *g, const char *key)
{
    config_setting_t *s = config_setting_get_member(g, key);

    return s && config_setting_get_bool(s);
}

static const char *algo_name(unsigned a)
{
    const bool none = coll_is_protocol((enum coll_algo)a) && !coll_protocol((enum coll_algo)a);

    return none ? "" : sched_algo_name((enum coll_algo)a);
}

static const char *type_name(unsigned t)
{
    return dtype_name((enum dtype)t);
}

static const char *op_name(unsigned o)
{
    return redop_name((enum redop)o);
}

static unsigned by_name(struct case_reader *r, int line, const char *key, const char *have,
                        const char *(*name)(unsigned), unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (*have && !strcmp(name(i), have))
            return i;
    mistake(r, line, "%s: found \"%.40s\", expected a name such as \"%s\"", key, have, name(0));
    return 0;
}

/* ---- the fabric ---- */

static void read_fabric(struct case_reader *r, config_setting_t *root)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    struct chaos_case *k = r->k;
    bool own = config_setting_get_member(root, "conf_text") != NULL;
    char path[1024];

    if (own)
        k->conf_text = strdup(text(r, root, "conf_text"));
    else
        snprintf(k->conf, sizeof(k->conf), "%s", text(r, root, "conf"));
    snprintf(path, sizeof(path), "%s/%s", k->cfg->conf_dir, k->conf);
    if (r->rc || !errs || (own && !k->conf_text))
        r->rc = r->rc ? r->rc : -ENOMEM;
    else
        k->own = own ? fabric_load_string(k->conf_text, "conf_text", errs)
                     : fabric_load(strchr(k->conf, '/') ? k->conf : path, errs);
    if (!r->rc && !k->own)
        mistake(r, line_of(root), "%.200s:%d: %s", errs->e[0].file, errs->e[0].line,
                errs->e[0].text);
    k->fab = k->own;
    if (k->fab)
        snprintf(k->shape, sizeof(k->shape), "%s", k->fab->name);
    free(errs);
}

/* ---- ranks ---- */

/* Reads the hosts of ranks. Other jobs may instead name ranks of the first job, whose processes
 * they share. */
static void read_hosts(struct case_reader *r, config_setting_t *g, struct chaos_job *j)
{
    config_setting_t *shared = j == r->k->job ? NULL : config_setting_get_member(g, "processes");
    config_setting_t *s = shared ? shared : config_setting_get_member(g, "hosts");
    unsigned most = shared ? r->k->job[0].nranks : r->k->fab->n_hosts;
    const char *key = shared ? "processes" : "hosts";
    int n = s ? config_setting_length(s) : 0;

    if (n < 1 || n > (int)CHAOS_RANKS) {
        mistake(r, s ? line_of(s) : 0, "%s: found %d ranks, expected 1 to %u", key, n, CHAOS_RANKS);
        return;
    }
    for (int i = 0; i < n; i++) {
        int h = config_setting_get_int_elem(s, i);

        if (h < 0 || (unsigned)h >= most)
            mistake(r, line_of(s), "%s: found %d, expected less than %u", key, h, most);
        j->process[i] = (unsigned)h;
        j->host_of_rank[i] = (uint16_t)h;
    }
    j->shares = shared != NULL;
    j->nranks = (unsigned)n;
    if (!r->rc && !chaos_place(r->k, j))
        mistake(r, line_of(s), "hosts: found more processes of a host than it has slots");
}

/* Writes at most CHAOS_ALGOS; returns how many. */
static unsigned read_algos(struct case_reader *r, config_setting_t *root, const char *key,
                           enum coll_algo *algo)
{
    config_setting_t *s = config_setting_get_member(root, key);
    int n = s ? config_setting_length(s) : 0;

    if (n > (int)CHAOS_ALGOS)
        mistake(r, line_of(s), "%s: found %d, expected at most %d", key, n, (int)CHAOS_ALGOS);
    for (int i = 0; !r->rc && i < n; i++) {
        const char *name = config_setting_get_string_elem(s, i);

        algo[i] =
            (enum coll_algo)by_name(r, line_of(s), key, name ? name : "", algo_name, CHAOS_ALGOS);
    }
    return r->rc ? 0 : (unsigned)n;
}

static void read_ranks(struct case_reader *r, config_setting_t *g, struct chaos_job *j)
{
    struct chaos_case *k = r->k;
    enum coll_algo algo[CHAOS_ALGOS];
    unsigned n;

    read_hosts(r, g, j);
    j->bytes = case_reader_number(r, g, "bytes", CHAOS_LONG);
    if (!j->bytes)
        j->bytes = CHAOS_BUFFER;
    j->group = (uint32_t)case_reader_number(r, g, "group", UINT32_MAX);
    j->key = bits_read(r, g, "key");
    j->tree = (uint16_t)case_reader_number(r, g, "first_tree", UINT16_MAX);
    j->n_trees = (unsigned)case_reader_number(r, g, "trees", COLL_TREES);
    j->window = (uint32_t)case_reader_number(r, g, "window", UINT32_MAX);
    if (j->tree + j->n_trees > k->fab->n_trees)
        mistake(r, line_of(g), "trees: found %u from %u on, expected %u in all", j->n_trees,
                j->tree, k->fab->n_trees);
    n = read_algos(r, g, "algorithms", algo);
    for (unsigned i = 0; i < n; i++)
        j->algos |= 1u << algo[i];
    if (!n)
        mistake(r, line_of(g), "found no algorithms, expected algorithms = [ \"ring\", ... ]");
    j->n_policy = read_algos(r, g, "policy", j->policy);
    j->goes_on = j->n_policy != 1 || j->policy[0] != ALGO_SHARP;
}

/* ---- operations ---- */

static void read_op(struct case_reader *r, config_setting_t *g, const struct chaos_job *j,
                    struct job_op *op)
{
    unsigned n = j->nranks;
    int line = line_of(g);
    size_t most;

    op->kind = (enum coll_kind)by_name(r, line, "collective", text(r, g, "collective"), coll_name,
                                       COLL_KINDS);
    op->algo = (enum coll_algo)by_name(r, line, "algorithm", text(r, g, "algorithm"), algo_name,
                                       CHAOS_ALGOS);
    op->type = (enum dtype)by_name(r, line, "type", text(r, g, "type"), type_name, DT_COUNT);
    op->op = (enum redop)by_name(r, line, "op", text(r, g, "op"), op_name, OP_COUNT);
    op->root = (unsigned)case_reader_number(r, g, "root", n - 1);
    op->sparse = (unsigned)case_reader_number(r, g, "sparse", n);
    op->skew_ps = (int64_t)case_reader_number(r, g, "skew_ps", PS_PER_S);
    op->seed = bits_read(r, g, "seed");
    op->in_place = flag(g, "in_place");
    op->mm_self = flag(g, "mm_self");
    if (r->rc)
        return;
    most = j->bytes / (op->kind == COLL_ALLREDUCE ? 1 : n) / dtype_size(op->type);
    op->count = case_reader_number(r, g, "count", most);
    if (!arith_valid(op->op, op->type))
        mistake(r, line, "op: found %s, which %s does not have", redop_name(op->op),
                dtype_name(op->type));
}

static void read_ops(struct case_reader *r, config_setting_t *g, struct chaos_job *j)
{
    config_setting_t *s = config_setting_get_member(g, "operations");
    int n = s ? config_setting_length(s) : 0;

    if (!s || n > (int)CHAOS_OPS) {
        mistake(r, s ? line_of(s) : 0, "operations: found %s, expected a list of at most %u",
                s ? "more" : "none", CHAOS_OPS);
        return;
    }
    for (int i = 0; !r->rc && i < n; i++)
        read_op(r, config_setting_get_elem(s, (unsigned)i), j, &j->op[i]);
    j->n_ops = j->ops = r->rc ? 0 : (unsigned)n;
}

static const char *start_name(unsigned s)
{
    return chaos_start_name((enum chaos_start)s);
}

static void read_jobs(struct case_reader *r, config_setting_t *root)
{
    config_setting_t *s = config_setting_get_member(root, "jobs");
    int n = s ? config_setting_length(s) : 0;

    r->k->seed = bits_read(r, root, "seed");
    if (config_setting_get_member(root, "multicast"))
        r->k->mcast = bits_read(r, root, "multicast");
    if (config_setting_get_member(root, "slices"))
        r->k->slices = bits_read(r, root, "slices");
    if (n >= (int)CHAOS_JOBS)
        mistake(r, line_of(s), "jobs: found %d, expected at most %u", n, CHAOS_JOBS - 1);
    for (int i = -1; !r->rc && i < n; i++) {
        config_setting_t *g = i < 0 ? root : config_setting_get_elem(s, (unsigned)i);
        struct chaos_job *j = &r->k->job[r->k->n_jobs++];

        if (i >= 0)
            j->start = (enum chaos_start)by_name(r, line_of(g), "start", text(r, g, "start"),
                                                 start_name, CHAOS_STARTS);
        if (i >= 0)
            j->stops_ps = (int64_t)case_reader_number(r, g, "stops_ps", PS_PER_S);
        read_ranks(r, g, j);
        if (!r->rc)
            read_ops(r, g, j);
    }
}

/* ---- faults ---- */

/* Copies lines [from, to) and makes the others empty, so that mistakes in the plan have the line
 * numbers of the case. */
static char *only_lines(const char *text, unsigned from, unsigned to)
{
    char *lines = strdup(text);
    unsigned line = 1;

    for (char *c = lines; c && *c; c++)
        if (*c == '\n')
            line++;
        else if (line < from || line >= to)
            *c = ' ';
    return lines;
}

static void read_faults(struct case_reader *r, config_setting_t *root)
{
    config_setting_t *s = config_setting_get_member(root, "faults"), *next;
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    char *plan = NULL;

    if (s && errs) {
        next = config_setting_get_elem(root, (unsigned)config_setting_index(s) + 1);
        plan =
            only_lines(r->text, (unsigned)line_of(s), next ? (unsigned)line_of(next) : UINT32_MAX);
    }
    if (!errs || (s && !plan))
        r->rc = -ENOMEM;
    else if (s && fault_plan_load_string(&r->k->plan, plan, r->path, r->k->fab, r->k->nprocs, errs))
        mistake(r, errs->e[0].line, "%s", errs->e[0].text);
    free(plan);
    free(errs);
}

static void read_case(struct case_reader *r, config_setting_t *root)
{
    snprintf(r->k->found, sizeof(r->k->found), "%s", text(r, root, "found"));
    read_fabric(r, root);
    if (!r->rc)
        read_jobs(r, root);
    if (!r->rc)
        read_faults(r, root);
}

int case_load_string(struct chaos_case *k, const char *text, const char *path, char *why)
{
    struct case_reader r = {.k = k, .path = path, .text = text, .why = why};
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    struct build b = {.errs = errs, .path = path};
    config_t c;

    if (!errs) {
        r.rc = -ENOMEM;
    } else if (!conf_syntax(&b, text, &c)) {
        mistake(&r, errs->e[0].line, "%s", errs->e[0].text);
    } else {
        read_case(&r, config_root_setting(&c));
        config_destroy(&c);
    }
    if (r.rc == -ENOMEM)
        snprintf(why, CHAOS_TEXT, "%.200s: out of memory", path);
    free(errs);
    return r.rc;
}

int case_load(struct chaos_case *k, const char *path, char *why)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    char *text = errs ? conf_text(path, "chaos case", errs) : NULL;
    int rc = text ? case_load_string(k, text, path, why) : errs ? -EINVAL : -ENOMEM;

    if (!text)
        snprintf(why, CHAOS_TEXT, "%.200s:0: %.300s", path,
                 errs ? errs->e[0].text : "out of memory");
    free(text);
    free(errs);
    return rc;
}
