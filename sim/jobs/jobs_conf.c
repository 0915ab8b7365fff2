/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a jobs file. A mistake in a job skips the checks that need what was wrong, so that one
 * mistake gives one error.
 */
#include "fabric/build.h"
#include "host/bench/layout.h"
#include "host/bench/trees.h"
#include "host/coll/alg/sched.h"
#include "sim/jobs/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a)     (sizeof(a) / sizeof((a)[0]))
#define TIME_MAX   1000000000000ull /* 1 s, as in fault plans */
#define SIZE_MAX_B (1ull << 30)
#define WINDOW_MAX 65536u

struct reader {
    struct build b;
    const struct fabric *f;
    struct jobs_plan *p;
    uint16_t *taken; /* [n_hosts] processes of all jobs so far */
    int line[JOBS_MAX];
};

/* An operation, and a job with one operation, as read from the file. */
struct entry {
    char name[FAB_NAME];
    uint64_t size;
    uint32_t root, window, group;
    int64_t start_ps, die_ps;
};
#define AT(f) offsetof(struct entry, f)

#define OP_KEYS                                                                                    \
    {"collective", KEY_OWN, 0, 0, 0}, {"algorithm", KEY_OWN, 0, 0, 0}, {"type", KEY_OWN, 0, 0, 0}, \
        {"op", KEY_OWN, 0, 0, 0}, {"size", KEY_SIZE, AT(size), 1, SIZE_MAX_B},                     \
    {                                                                                              \
        "root", KEY_UINT, AT(root), 0, JOBS_RANKS - 1                                              \
    }
static const struct key op_keys[] = {OP_KEYS};
static const struct key job_keys[] = {
    {"name", KEY_NAME, AT(name), 0, 0},
    {"hosts", KEY_OWN, 0, 0, 0},
    OP_KEYS,
    {"operations", KEY_OWN, 0, 0, 0},
    {"repeat", KEY_OWN, 0, 0, 0},
    {"start", KEY_TIME, AT(start_ps), 0, TIME_MAX},
    {"die_at", KEY_TIME, AT(die_ps), 0, TIME_MAX},
    {"policy", KEY_OWN, 0, 0, 0},
    {"trees", KEY_OWN, 0, 0, 0},
    {"window", KEY_UINT, AT(window), 1, WINDOW_MAX},
    {"group", KEY_UINT, AT(group), 1, JOBS_GROUP_MAX},
};

static int line_of(const config_setting_t *s)
{
    return (int)config_setting_source_line(s);
}

/* Of a key of a group, else of the group. */
static int key_line(config_setting_t *g, const char *key)
{
    const config_setting_t *s = config_setting_get_member(g, key);

    return line_of(s ? s : g);
}

/* ---- names ---- */

static const char *algo_name(unsigned i)
{
    return sched_algo_name((enum coll_algo)i);
}

int jobs_algo_by_name(const char *name)
{
    for (unsigned i = 0; i <= ALGO_AUTO; i++)
        if (!strcmp(name, algo_name(i)))
            return (int)i;
    return -EINVAL;
}

static int coll_by_name(const char *name)
{
    for (unsigned i = 0; i < COLL_KINDS; i++)
        if (!strcmp(name, coll_name(i)))
            return (int)i;
    return -EINVAL;
}

static const char *type_name(unsigned i)
{
    return dtype_name((enum dtype)i);
}

static const char *op_name(unsigned i)
{
    return redop_name((enum redop)i);
}

struct names {
    int (*find)(const char *name);
    const char *(*name)(unsigned i);
    unsigned n;
};
static const struct names algos = {jobs_algo_by_name, algo_name, ALGO_COUNT + 1},
                          policies = {jobs_algo_by_name, algo_name, ALGO_COUNT},
                          collectives = {coll_by_name, coll_name, COLL_KINDS},
                          types = {dtype_by_name, type_name, DT_COUNT},
                          ops = {redop_by_name, op_name, OP_COUNT};

static void list_names(const struct names *n, unsigned long mask, char *text, size_t size)
{
    size_t at = 0;

    *text = '\0';
    for (unsigned i = 0; i < n->n && at < size; i++)
        if (mask >> i & 1)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", n->name(i));
}

/* A name of the list; -EINVAL with the mistake reported. s: NULL: dflt. */
static int read_name(struct reader *r, const config_setting_t *s, const struct names *n, int dflt)
{
    const char *text = s ? config_setting_get_string(s) : NULL;
    int i = text ? n->find(text) : -EINVAL;
    char expected[200], list[180];

    if (!s)
        return dflt;
    if (i >= 0 && (unsigned)i < n->n)
        return i;
    list_names(n, ~0ul, list, sizeof(list));
    snprintf(expected, sizeof(expected), "one of: %s", list);
    keys_expected(&r->b, s, expected);
    return -EINVAL;
}

static int read_member(struct reader *r, config_setting_t *g, const char *key,
                       const struct names *n, int dflt)
{
    return read_name(r, config_setting_get_member(g, key), n, dflt);
}

/* ---- hosts ---- */

static int find_host(struct reader *r, int line, const char *name, size_t len)
{
    char one[FAB_NAME];
    const struct fab_node *n = NULL;

    if (len < sizeof(one)) {
        snprintf(one, sizeof(one), "%.*s", (int)len, name);
        n = fabric_node(r->f, one);
    }
    if (n && n->kind == FAB_HOST && !n->outside)
        return n->host_index;
    build_error(&r->b, line, "hosts: found \"%.*s\", expected %s", (int)(len < 60 ? len : 60), name,
                n && n->kind == FAB_HOST ? "a host that is not outside: it is simulated"
                                         : "the name of a host, or FIRST:LAST of hosts");
    return -EINVAL;
}

static void add_host(struct reader *r, int line, struct jobs_job *j, uint16_t host)
{
    const char *name = r->f->nodes[r->f->hosts[host]].name;

    for (unsigned i = 0; i < j->nranks; i++)
        if (j->host_of_rank[i] == host) {
            build_error(&r->b, line, "hosts: found %s twice, expected one rank of a job on a host",
                        name);
            return;
        }
    if (r->taken[host] >= r->f->slots_per_host) {
        build_error(&r->b, line,
                    "hosts: found %s in %u jobs, expected at most its %u process slots", name,
                    r->taken[host] + 1u, r->f->slots_per_host);
        return;
    }
    r->taken[host]++;
    j->host_of_rank[j->nranks++] = host;
}

/* "h0", "h0:h3" (both ends included) or "h0:h6:2" (every second). */
static void read_range(struct reader *r, int line, struct jobs_job *j, const char *text)
{
    const char *last = strchr(text, ':'), *step = last ? strchr(last + 1, ':') : NULL;
    int a, z, by = 1;
    char *end;

    if (!strcmp(text, "all")) {
        for (unsigned i = 0; i < r->f->n_hosts; i++)
            add_host(r, line, j, (uint16_t)i);
        return;
    }
    a = find_host(r, line, text, last ? (size_t)(last - text) : strlen(text));
    if (a < 0 || !last) {
        if (a >= 0)
            add_host(r, line, j, (uint16_t)a);
        return;
    }
    z = find_host(r, line, last + 1, step ? (size_t)(step - last - 1) : strlen(last + 1));
    if (step) {
        long v = strtol(step + 1, &end, 10);

        by = *end || end == step + 1 || v < 1 || v > FAB_MAX_HOSTS ? 0 : (int)v;
    }
    if (z < 0)
        return;
    if (!by || z < a) {
        build_error(&r->b, line,
                    "hosts: found \"%.60s\", expected FIRST:LAST:STEP with LAST not before FIRST "
                    "and a whole STEP from 1",
                    text);
        return;
    }
    for (int h = a; h <= z; h += by)
        add_host(r, line, j, (uint16_t)h);
}

static void read_hosts(struct reader *r, config_setting_t *g, struct jobs_job *j)
{
    config_setting_t *s = config_setting_get_member(g, "hosts");
    const char *one = s ? config_setting_get_string(s) : NULL;
    unsigned before = r->b.errs->total;
    int n = s && config_setting_type(s) == CONFIG_TYPE_ARRAY ? config_setting_length(s) : 0;

    j->host_of_rank = calloc(r->f->n_hosts + 1u, sizeof(*j->host_of_rank));
    if (!j->host_of_rank) {
        r->b.no_memory = true;
        return;
    }
    if (!s) {
        build_error(&r->b, line_of(g), "found no hosts, expected hosts = [ \"%s\", ... ]",
                    r->f->nodes[r->f->hosts[0]].name);
        return;
    }
    if (one)
        read_range(r, line_of(s), j, one);
    else if (!n || !config_setting_get_string_elem(s, 0))
        keys_expected(&r->b, s, "names of hosts, as [ \"h0\", \"h1\" ], \"h0:h7\" or \"all\"");
    for (int i = 0; i < n; i++)
        if (config_setting_get_string_elem(s, i))
            read_range(r, line_of(s), j, config_setting_get_string_elem(s, i));
    if (r->b.errs->total == before && j->nranks < 2)
        build_error(&r->b, line_of(s), "hosts: found %u rank, expected at least 2", j->nranks);
}

/* ---- trees, policy, repeat ---- */

static void read_trees(struct reader *r, config_setting_t *g, struct jobs_job *j)
{
    config_setting_t *s = config_setting_get_member(g, "trees");
    int n = s && config_setting_type(s) == CONFIG_TYPE_ARRAY ? config_setting_length(s) : 0;

    if (!s) {
        j->n_trees = trees_choose(r->f, j->nranks, j->host_of_rank, j->tree);
        return;
    }
    if (n < 1 || n > COLL_TREES ||
        config_setting_type(config_setting_get_elem(s, 0)) != CONFIG_TYPE_INT) {
        keys_expected(&r->b, s, "1 to 8 numbers of trees that trib plan shows, as [ 0, 1 ]");
        return;
    }
    for (int i = 0; i < n; i++) {
        int t = config_setting_get_int_elem(s, i);

        if (t < 0 || t >= r->f->n_trees) {
            build_error(&r->b, line_of(s), "trees: found %d, expected a tree below %u", t,
                        r->f->n_trees);
            return;
        }
        for (unsigned k = 0; k < j->n_trees; k++)
            if (j->tree[k] == t) {
                build_error(&r->b, line_of(s), "trees: found %d twice, expected each once", t);
                return;
            }
        j->tree[j->n_trees++] = (uint16_t)t;
    }
}

static void read_policy(struct reader *r, config_setting_t *g, struct jobs_job *j)
{
    config_setting_t *s = config_setting_get_member(g, "policy");
    int n = s && config_setting_type(s) == CONFIG_TYPE_ARRAY ? config_setting_length(s) : 0;

    if (!s)
        return;
    if (n < 1) {
        keys_expected(&r->b, s, "algorithms to fail over to, in order, as [ \"sharp\", \"ring\" ]");
        return;
    }
    for (int i = 0; i < n; i++) {
        int a = read_name(r, config_setting_get_elem(s, (unsigned)i), &policies, -EINVAL);

        if (a < 0)
            return;
        if (j->algos >> a & 1) {
            build_error(&r->b, line_of(s), "policy: found %s twice, expected each once",
                        algo_name((unsigned)a));
            return;
        }
        j->algos |= 1u << a;
        j->policy[j->n_policy++] = (enum coll_algo)a;
    }
}

static void read_repeat(struct reader *r, config_setting_t *g, struct jobs_job *j)
{
    const config_setting_t *s = config_setting_get_member(g, "repeat");
    const char *text = s ? config_setting_get_string(s) : NULL;
    int v = s && config_setting_type(s) == CONFIG_TYPE_INT ? config_setting_get_int(s) : 0;

    j->repeat = 1;
    if (text && !strcmp(text, "others"))
        j->repeat = 0;
    else if (v >= 1 && v <= 1000000)
        j->repeat = (uint32_t)v;
    else if (s)
        keys_expected(&r->b, s,
                      "an integer from 1 to 1000000, or \"others\": until they have ended");
}

/* ---- operations ---- */

static void check_algo(struct reader *r, int line, const struct jobs_job *j, struct jobs_op *o)
{
    struct coll_args a = {.kind = o->kind,
                          .algo = o->algo,
                          .count = o->count,
                          .type = o->type,
                          .op = o->op,
                          .root = o->root};
    struct coll_prediction pred;
    char why[COLL_WHY], can[180];
    unsigned long mask = 0;
    int rc;

    o->asked = o->algo;
    for (unsigned i = 0; i < ALGO_COUNT; i++)
        mask |= (unsigned long)sched_has(o->kind, (enum coll_algo)i) << i;
    list_names(&policies, mask, can, sizeof(can));
    if (o->algo == ALGO_AUTO) {
        rc = coll_auto(r->f, &a, j->nranks, j->host_of_rank, j->tree, j->n_trees, j->window,
                       (1u << ALGO_COUNT) - 1, &o->algo, &pred, why);
    } else if (!(mask >> o->algo & 1)) {
        build_error(&r->b, line, "algorithm: found %s, which %s does not have, expected one of: %s",
                    algo_name(o->algo), coll_name(o->kind), can);
        return;
    } else if (o->algo == ALGO_SHARP && !j->n_trees) {
        rc = -ENOTSUP;
    } else {
        rc = coll_predict_trees(r->f, &a, j->nranks, j->host_of_rank, j->tree, j->n_trees,
                                j->window, &pred);
    }
    if (rc == -ENOMEM)
        r->b.no_memory = true;
    else if (rc)
        build_error(&r->b, line,
                    "algorithm: found %s, which these %u ranks of %s cannot run, expected one that "
                    "they can, or \"auto\"",
                    algo_name(o->algo), j->nranks, r->f->name);
    else
        o->model_ps = pred.time_ps;
}

static void check_op(struct reader *r, config_setting_t *g, const struct jobs_job *j,
                     struct jobs_op *o)
{
    unsigned blocks = layout_blocks(o->kind, j->nranks, 0), size = dtype_size(o->type);
    unsigned before = r->b.errs->total;

    if (coll_reduces(o->kind) && !arith_valid(o->op, o->type))
        build_error(&r->b, key_line(g, "op"), "op: found %s, which %s does not have",
                    op_name(o->op), type_name(o->type));
    if (coll_rooted(o->kind) && o->root >= j->nranks)
        build_error(&r->b, key_line(g, "root"), "root: found %u, expected a rank below %u", o->root,
                    j->nranks);
    if (o->kind == COLL_BARRIER)
        o->bytes = o->count = 0;
    else
        o->count = o->bytes / size / blocks;
    if (o->kind != COLL_BARRIER && !o->bytes)
        build_error(&r->b, line_of(g), "found no size, expected size = \"1MiB\" or the like");
    else if (o->kind != COLL_BARRIER && !o->count)
        build_error(
            &r->b, key_line(g, "size"),
            "size: found %llu bytes, expected at least %u, one element of %s for each of %u",
            (unsigned long long)o->bytes, size * blocks, type_name(o->type), blocks);
    if (r->b.errs->total == before)
        check_algo(r, key_line(g, "algorithm"), j, o);
}

static void read_op(struct reader *r, config_setting_t *g, struct jobs_job *j,
                    const struct entry *in)
{
    struct jobs_op *o = &j->op[j->n_ops];
    int kind = read_member(r, g, "collective", &collectives, COLL_ALLREDUCE),
        algo = read_member(r, g, "algorithm", &algos, ALGO_AUTO),
        type = read_member(r, g, "type", &types, DT_FP32),
        op = read_member(r, g, "op", &ops, OP_SUM);

    if (kind < 0 || algo < 0 || type < 0 || op < 0)
        return;
    *o = (struct jobs_op){.kind = (enum coll_kind)kind,
                          .algo = (enum coll_algo)algo,
                          .type = (enum dtype)type,
                          .op = (enum redop)op,
                          .root = in->root,
                          .bytes = in->size};
    check_op(r, g, j, o);
    j->algos |= 1u << o->algo;
    j->n_ops++;
}

static void read_ops(struct reader *r, config_setting_t *g, struct jobs_job *j,
                     const struct entry *in)
{
    config_setting_t *s = config_setting_get_member(g, "operations");
    int n = s && config_setting_type(s) == CONFIG_TYPE_LIST ? config_setting_length(s) : 0;

    if (!s) {
        read_op(r, g, j, in);
        return;
    }
    for (unsigned i = 0; i < LEN(op_keys); i++)
        if (config_setting_get_member(g, op_keys[i].name)) {
            build_error(&r->b, key_line(g, op_keys[i].name),
                        "%s: found it beside operations, expected it in their entries",
                        op_keys[i].name);
            return;
        }
    if (n < 1 || n > (int)JOBS_OPS) {
        keys_expected(&r->b, s, "a list ( { collective = \"all_reduce\"; ... }, ... ) of 1 to 8");
        return;
    }
    for (int i = 0; i < n; i++) {
        config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
        unsigned before = r->b.errs->total;
        struct entry of = {0};

        if (config_setting_type(e) != CONFIG_TYPE_GROUP) {
            keys_expected(&r->b, e, "a group { collective = \"all_reduce\"; ... }");
            continue;
        }
        keys_read(&r->b, e, op_keys, LEN(op_keys), &of);
        if (r->b.errs->total == before)
            read_op(r, e, j, &of);
    }
}

/* ---- jobs ---- */

static void read_job(struct reader *r, config_setting_t *g)
{
    struct jobs_plan *p = r->p;
    struct jobs_job *j = &p->job[p->n];
    unsigned before = r->b.errs->total;
    struct entry in = {.die_ps = JOBS_NEVER, .group = p->n + 1};

    if (config_setting_type(g) != CONFIG_TYPE_GROUP) {
        keys_expected(&r->b, g, "a group { name = \"a\"; hosts = [ ... ]; size = \"1MiB\"; }");
        return;
    }
    r->line[p->n] = line_of(g);
    snprintf(in.name, sizeof(in.name), "job%u", p->n);
    *j = (struct jobs_job){.first_rank = p->nranks};
    p->n++;
    keys_read(&r->b, g, job_keys, LEN(job_keys), &in);
    snprintf(j->name, sizeof(j->name), "%s", in.name);
    j->start_ps = in.start_ps;
    j->die_ps = in.die_ps;
    j->window = in.window;
    j->group = in.group;
    read_repeat(r, g, j);
    read_policy(r, g, j);
    read_hosts(r, g, j);
    if (j->die_ps >= 0 && j->die_ps <= j->start_ps)
        build_error(&r->b, key_line(g, "die_at"),
                    "die_at: found it not after the start, expected a later time");
    if (r->b.errs->total != before || r->b.no_memory)
        return;
    read_trees(r, g, j);
    if (r->b.errs->total == before)
        read_ops(r, g, j, &in);
    p->nranks += j->nranks;
    if (p->nranks > JOBS_RANKS && p->nranks - j->nranks <= JOBS_RANKS)
        build_error(&r->b, line_of(g),
                    "hosts: found more than %u ranks of all jobs, expected fewer", JOBS_RANKS);
}

/* What two jobs cannot share, and that one ends by itself. */
static void check_jobs(struct reader *r)
{
    const struct jobs_plan *p = r->p;
    bool counts = false;

    for (unsigned i = 0; i < p->n; i++) {
        counts |= p->job[i].repeat != 0;
        for (unsigned k = 0; k < i; k++) {
            if (!strcmp(p->job[i].name, p->job[k].name))
                build_error(&r->b, r->line[i],
                            "name: found \"%s\" of the job in line %d, expected "
                            "another",
                            p->job[i].name, r->line[k]);
            else if (p->job[i].group == p->job[k].group)
                build_error(&r->b, r->line[i], "group: found %u, which %s has, expected another",
                            p->job[i].group, p->job[k].name);
        }
    }
    if (p->n && !counts)
        build_error(&r->b, r->line[0],
                    "repeat: found \"others\" in every job, expected a number in at least one");
}

static void read_jobs(struct reader *r, config_setting_t *root)
{
    config_setting_t *list = config_setting_get_member(root, "jobs");
    int n = list ? config_setting_length(list) : 0;

    for (int i = 0; i < config_setting_length(root); i++) {
        config_setting_t *s = config_setting_get_elem(root, (unsigned)i);

        if (s != list)
            build_error(&r->b, line_of(s),
                        "found unknown key \"%.60s\", expected jobs = ( ... ) alone",
                        config_setting_name(s));
    }
    if (!list) {
        build_error(&r->b, 0, "found no jobs, expected jobs = ( { ... }, ... )");
        return;
    }
    if (config_setting_type(list) != CONFIG_TYPE_LIST || n < 1 || n > (int)JOBS_MAX) {
        keys_expected(&r->b, list, "a list ( { ... }, ... ) of 1 to 32 jobs");
        return;
    }
    for (int i = 0; i < n; i++)
        read_job(r, config_setting_get_elem(list, (unsigned)i));
    if (!build_failed(&r->b))
        check_jobs(r);
}

/* Hosts of the ranks of all jobs, one job after the other. */
static void gather_ranks(struct reader *r)
{
    struct jobs_plan *p = r->p;

    p->host_of_rank = calloc(p->nranks + 1u, sizeof(*p->host_of_rank));
    r->b.no_memory |= !p->host_of_rank;
    for (unsigned i = 0; p->host_of_rank && i < p->n; i++)
        memcpy(p->host_of_rank + p->job[i].first_rank, p->job[i].host_of_rank,
               p->job[i].nranks * sizeof(*p->host_of_rank));
}

int jobs_load_string(struct jobs_plan *p, const char *text, const char *path,
                     const struct fabric *f, struct fab_errors *errs)
{
    struct reader r = {.b = {.errs = errs, .path = path}, .f = f, .p = p};
    config_t c;

    *p = (struct jobs_plan){0};
    errs->n = errs->total = 0;
    r.taken = calloc(f->n_hosts + 1u, sizeof(*r.taken));
    r.b.no_memory = !r.taken;
    if (r.taken && conf_parse(&r.b, text, &c)) {
        read_jobs(&r, config_root_setting(&c));
        config_destroy(&c);
    }
    if (!build_failed(&r.b))
        gather_ranks(&r);
    free(r.taken);
    if (r.b.no_memory)
        build_error(&r.b, 0, "found too little memory, expected enough for these jobs");
    fab_errors_sort(errs);
    if (!build_failed(&r.b))
        return 0;
    jobs_free(p);
    return -EINVAL;
}

int jobs_load(struct jobs_plan *p, const char *path, const struct fabric *f,
              struct fab_errors *errs)
{
    char *text;
    int rc;

    *p = (struct jobs_plan){0};
    errs->n = errs->total = 0;
    text = conf_text(path, errs);
    rc = text ? jobs_load_string(p, text, path, f, errs) : -EINVAL;
    free(text);
    return rc;
}

void jobs_free(struct jobs_plan *p)
{
    for (unsigned i = 0; i < p->n; i++)
        free(p->job[i].host_of_rank);
    free(p->host_of_rank);
    *p = (struct jobs_plan){0};
}
