/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a jobs file. A mistake in a job skips the checks that need what was wrong, so that one
 * mistake gives one error.
 */
#include "collective/sched.h"
#include "host/bench/trees.h"
#include "sim/jobs/jobs_conf_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

#define TIME_MAX   1000000000000ull /* 1 s, as in fault plans */
#define WINDOW_MAX 65536u

static const struct key job_keys[] = {
    /* In tables. Default: `job0`, `job1`, ... */
    PLAIN_KEY("name", KEY_NAME, ENTRY(name), NULL),
    /* One rank on each, in this order: names, or `"FIRST:LAST"` and `"FIRST:LAST:STEP"` of the fabric's
     * order of hosts, both ends included; one of these or an array of them; `"all"`. Needed, at least
     * 2. */
    OWN_KEY("hosts"),
    /* As in `trib perf`. */
    OWN_KEY_FROM("collective", "all_reduce"),
    /* As in `--algo`; `"auto"` is the fastest by the model. */
    OWN_KEY_FROM("algorithm", "auto"),
    /* Element type. */
    OWN_KEY_FROM("type", "float"),
    /* Reduction. */
    OWN_KEY_FROM("op", "sum"),
    /* In bytes as `-b` counts them: `4096`, `"4KiB"`. Needed, but of a barrier. */
    RANGE_KEY("size", KEY_SIZE, ENTRY(size), 1, 1ull << 30, NULL),
    /* Root of the collectives that have one. */
    RANGE_KEY("root", KEY_UINT, ENTRY(root), 0, JOBS_RANKS - 1, "0"),
    /* Instead of these six: a list of 1 to 8 groups of them, run one after the other; an iteration is
     * the whole list. */
    OWN_KEY("operations"),
    /* Iterations, 1 to 1000000; `"others"`: until all jobs with a number have ended. */
    OWN_KEY_FROM("repeat", "1"),
    /* Time at which it connects and then begins. Default: together with the others. */
    RANGE_KEY("start", KEY_TIME, ENTRY(start_ps), 0, TIME_MAX, NULL),
    /* Time at which all its processes die, after its `start`. Default: never. */
    RANGE_KEY("die_at", KEY_TIME, ENTRY(die_ps), 0, TIME_MAX, NULL),
    /* Array of algorithms to fail over to, as `--policy`. Default: sharp, ring. */
    OWN_KEY("policy"),
    /* Array of aggregation trees, as `trib plan` numbers them. Default: those that reach all its
     * ranks. */
    OWN_KEY("trees"),
    /* Slots that it asks for, as `--window`. Default: from the fabric. */
    RANGE_KEY("window", KEY_UINT, ENTRY(window), 1, WINDOW_MAX, NULL),
    /* Number of its aggregation group, no other job's. Default: its place in the file, from 1. */
    RANGE_KEY("group", KEY_UINT, ENTRY(group), 1, JOBS_GROUP_MAX, NULL),
};
const struct key *const jobs_op_keys = job_keys + 2; /* from `collective` on */

/* ---- hosts ---- */

static int find_host(struct jobs_reader *r, int line, const char *name, size_t len)
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

static void add_host(struct jobs_reader *r, int line, struct jobs_job *j, uint16_t host)
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
static void read_range(struct jobs_reader *r, int line, struct jobs_job *j, const char *text)
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

static void read_hosts(struct jobs_reader *r, config_setting_t *g, struct jobs_job *j)
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
        build_error(&r->b, jobs_line(g), "found no hosts, expected hosts = [ \"%s\", ... ]",
                    r->f->nodes[r->f->hosts[0]].name);
        return;
    }
    if (one)
        read_range(r, jobs_line(s), j, one);
    else if (!n || !config_setting_get_string_elem(s, 0))
        keys_expected(&r->b, s, "names of hosts, as [ \"h0\", \"h1\" ], \"h0:h7\" or \"all\"");
    for (int i = 0; i < n; i++)
        if (config_setting_get_string_elem(s, i))
            read_range(r, jobs_line(s), j, config_setting_get_string_elem(s, i));
    if (r->b.errs->total == before && j->nranks < 2)
        build_error(&r->b, jobs_line(s), "hosts: found %u rank, expected at least 2", j->nranks);
}

/* ---- trees, policy, repeat ---- */

static void read_trees(struct jobs_reader *r, config_setting_t *g, struct jobs_job *j)
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
            build_error(&r->b, jobs_line(s), "trees: found %d, expected a tree below %u", t,
                        r->f->n_trees);
            return;
        }
        for (unsigned k = 0; k < j->n_trees; k++)
            if (j->tree[k] == t) {
                build_error(&r->b, jobs_line(s), "trees: found %d twice, expected each once", t);
                return;
            }
        j->tree[j->n_trees++] = (uint16_t)t;
    }
}

static void read_policy(struct jobs_reader *r, config_setting_t *g, struct jobs_job *j)
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
        int a = jobs_read_name(r, config_setting_get_elem(s, (unsigned)i), &jobs_policies);

        if (a < 0)
            return;
        if (j->algos >> a & 1) {
            build_error(&r->b, jobs_line(s), "policy: found %s twice, expected each once",
                        sched_algo_name((enum coll_algo)a));
            return;
        }
        j->algos |= 1u << a;
        j->policy[j->n_policy++] = (enum coll_algo)a;
    }
}

static void read_repeat(struct jobs_reader *r, config_setting_t *g, struct jobs_job *j)
{
    const config_setting_t *s = config_setting_get_member(g, "repeat");
    const char *text = s ? config_setting_get_string(s) : NULL;
    int v = s && config_setting_type(s) == CONFIG_TYPE_INT ? config_setting_get_int(s) : 0;

    j->repeat = (uint32_t)atoi(keys_initial_of(job_keys, LEN(job_keys), "repeat"));
    if (text && !strcmp(text, "others"))
        j->repeat = 0;
    else if (v >= 1 && v <= 1000000)
        j->repeat = (uint32_t)v;
    else if (s)
        keys_expected(&r->b, s,
                      "an integer from 1 to 1000000, or \"others\": until they have ended");
}

/* ---- jobs ---- */

static void read_job(struct jobs_reader *r, config_setting_t *g)
{
    struct jobs_plan *p = r->p;
    struct jobs_job *j = &p->job[p->n];
    unsigned before = r->b.errs->total;
    struct jobs_entry in = {.die_ps = JOBS_NEVER, .group = p->n + 1};

    if (config_setting_type(g) != CONFIG_TYPE_GROUP) {
        keys_expected(&r->b, g, "a group { name = \"a\"; hosts = [ ... ]; size = \"1MiB\"; }");
        return;
    }
    r->line[p->n] = jobs_line(g);
    snprintf(in.name, sizeof(in.name), "job%u", p->n);
    *j = (struct jobs_job){.first_rank = p->nranks};
    p->n++;
    keys_initial(job_keys, LEN(job_keys), &in);
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
        build_error(&r->b, jobs_key_line(g, "die_at"),
                    "die_at: found %gus, expected a time after the start, %gus",
                    (double)j->die_ps / PS_PER_US, (double)j->start_ps / PS_PER_US);
    if (r->b.errs->total != before || r->b.no_memory)
        return;
    read_trees(r, g, j);
    if (r->b.errs->total == before)
        jobs_read_ops(r, g, j, &in);
    p->nranks += j->nranks;
    if (p->nranks > JOBS_RANKS && p->nranks - j->nranks <= JOBS_RANKS)
        build_error(&r->b, jobs_line(g),
                    "hosts: found more than %u ranks of all jobs, expected fewer", JOBS_RANKS);
}

/* What two jobs cannot share, and that one ends by itself. */
static void check_jobs(struct jobs_reader *r)
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

static void read_jobs(struct jobs_reader *r, config_setting_t *root)
{
    config_setting_t *list = config_setting_get_member(root, "jobs");
    int n = list ? config_setting_length(list) : 0;

    for (int i = 0; i < config_setting_length(root); i++) {
        config_setting_t *s = config_setting_get_elem(root, (unsigned)i);

        if (s != list)
            build_error(&r->b, jobs_line(s),
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
static void gather_ranks(struct jobs_reader *r)
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
    struct jobs_reader r = {.b = {.errs = errs, .path = path}, .f = f, .p = p};
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
    text = conf_text(path, "file of jobs", errs);
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
