/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One table describes every option: its names, how its value is read and where it goes. Parsing,
 * messages and the help text all come from it.
 */
#include "host/bench/options.h"

#include "host/bench/buffer.h"
#include "host/coll/alg/sched.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { K_UINT, K_SIZE, K_SECONDS, K_TYPES, K_OPS, K_ALGOS, K_POLICY, K_STRING, K_FLAG };

struct option_row {
    char c;
    const char *name, *arg;
    enum kind kind;
    size_t offset;
    uint64_t min, max;
    const char *help;
};

#define AT(f)    offsetof(struct perf_opts, f)
#define MAX_SIZE (1ull << 40)

static const struct option_row table[] = {
    {'g', "ranks", "N", K_UINT, AT(ranks), 1, FAB_MAX_MEMBERS,
     "number of ranks (default: one on every host)"},
    {'b', "minbytes", "SIZE", K_SIZE, AT(min_bytes), 1, MAX_SIZE, "smallest size (4K)"},
    {'e', "maxbytes", "SIZE", K_SIZE, AT(max_bytes), 1, MAX_SIZE, "largest size (16M)"},
    {'i', "stepbytes", "SIZE", K_SIZE, AT(step_bytes), 1, MAX_SIZE, "fixed step between sizes"},
    {'f', "stepfactor", "N", K_UINT, AT(factor), 2, 1u << 20, "factor between sizes (4)"},
    {'n', "iters", "N", K_UINT, AT(iters), 1, 1000000, "timed iterations of a row (20)"},
    {'w', "warmup_iters", "N", K_UINT, AT(warmup), 0, 1000000,
     "iterations before the clock starts (1)"},
    {'d', "datatype", "TYPE", K_TYPES, AT(types), 0, 0, "type, list of types, or all (float)"},
    {'o', "op", "OP", K_OPS, AT(ops), 0, 0,
     "sum, prod, min, max, avg, a list, or all that the type has (sum)"},
    {'c', "check", "0|1", K_UINT, AT(check), 0, 1,
     "compare every element with the exact result (1)"},
    {'r', "root", "RANK", K_UINT, AT(root), 0, FAB_MAX_MEMBERS - 1,
     "root of rooted collectives (0)"},
    {'k', "sparse", "K", K_UINT, AT(sparse), 1, FAB_MAX_MEMBERS,
     "alltoall: each rank sends to itself and its K - 1 next only"},
    {0, "mm-self", NULL, K_FLAG, AT(mm_self), 0, 0,
     "multimem: a GPU's own share crosses the switch too, as in (1 + 1 / N) B out of each"},
    {'J', "output_file", "FILE", K_STRING, AT(json), 0, 0, "write the results as JSON"},
    {0, "algo", "LIST", K_ALGOS, AT(algos), 0, 0,
     "an algorithm, a list, all that can do it, auto: the fastest by the model, or nvls-hw: this "
     "machine's own GPUs (ring,sharp)"},
    {0, "error", NULL, K_FLAG, AT(error), 0, 0,
     "measure each algorithm's error against the exact sum, in ULP of the type"},
    {0, "tree", "N", K_UINT, AT(tree), 0, 65534,
     "one aggregation tree (default: all that reach the ranks)"},
    {0, "window", "SLOTS", K_UINT, AT(window), 0, 1u << 20,
     "slots asked of aggregation nodes (0: their choice)"},
    {0, "policy", "LIST", K_POLICY, 0, 0, 0,
     "algorithms to go on by, in order, when switches refuse or fail; one alone: fail "
     "(sharp,ring)"},
    {0, "max-wall", "SECONDS", K_SECONDS, AT(max_wall), 0, 86400,
     "wall time of a row at most, warm-ups, both places, retries and checks (60); a fifth of it "
     "for "
     "a timed run (2): iterations are cut to keep it, and rows say so"},
    {0, "rsh", "CMD", K_STRING, AT(rsh), 0, 0,
     "start a rank on a host outside by CMD HOST trib-perf --remote-rank, as ssh does"},
    {0, "mem", "WHERE", K_STRING, AT(mem), 0, 0,
     "where buffers are: host, cuda or cuda:N, the memory of GPU N (host)"},
    {'h', "help", NULL, K_FLAG, AT(help), 0, 0, "this text"},
};
#define ROWS (sizeof(table) / sizeof(table[0]))

const char *perf_algo_name(enum coll_algo a)
{
    return a == PERF_NVLS_HW ? "nvls-hw" : sched_algo_name(a);
}

bool coll_can_be_in_place(enum coll_kind k)
{
    return k != COLL_ALLTOALL && k != COLL_SENDRECV && k != COLL_BARRIER;
}

/* ---- values ---- */

int options_size(const char *s, uint64_t *bytes)
{
    static const char prefixes[] = "kmgt";
    char *end;

    if (!isdigit((unsigned char)*s))
        return -EINVAL;
    double v = strtod(s, &end);
    if (memchr(s, 'x', (size_t)(end - s)) || memchr(s, 'X', (size_t)(end - s)))
        return -EINVAL;
    const char *p = *end ? strchr(prefixes, tolower((unsigned char)*end)) : NULL;
    if (p) {
        bool decimal = toupper((unsigned char)end[1]) == 'B' && !end[2];
        if (!decimal && end[1] && strcasecmp(end + 1, "ib"))
            return -EINVAL;
        v *= pow(decimal ? 1000 : 1024, (double)(p - prefixes + 1));
    } else if (*end && strcasecmp(end, "b")) {
        return -EINVAL;
    }
    if (!(v >= 0 && v <= 1e18) || v != floor(v))
        return -EINVAL;
    *bytes = (uint64_t)v;
    return 0;
}

static int name_index(enum kind k, const char *s)
{
    if (k == K_TYPES)
        return dtype_by_name(s);
    if (k == K_OPS)
        return redop_by_name(s);
    for (int i = 0; i < PERF_ALGOS; i++)
        if (!strcmp(perf_algo_name((enum coll_algo)i), s))
            return i;
    return -EINVAL;
}

static const char *name_of(enum kind k, int i)
{
    return k == K_TYPES ? dtype_name(i)
           : k == K_OPS ? redop_name(i)
                        : perf_algo_name((enum coll_algo)i);
}

/* A comma-separated list of names, or "all", as a bit mask. */
static int parse_names(const struct option_row *r, const char *label, const char *val,
                       unsigned *mask, char *err)
{
    int n = r->kind == K_TYPES ? DT_COUNT : r->kind == K_OPS ? OP_COUNT : PERF_ALGOS;
    char buf[256], *save = NULL;

    *mask = 0;
    if (!strcmp(val, "all")) {
        *mask = r->kind == K_ALGOS ? ALGOS_ALL : (1u << n) - 1;
        return OPT_OK;
    }
    snprintf(buf, sizeof(buf), "%s", val);
    for (char *s = strtok_r(buf, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        int i = name_index(r->kind, s);
        if (i < 0) {
            *mask = 0;
            break;
        }
        *mask |= 1u << i;
    }
    if (*mask)
        return OPT_OK;
    int at = snprintf(err, OPT_ERR, "%s: found \"%.64s\", expected all or a list of", label, val);
    for (int i = 0; i < n && at < OPT_ERR; i++)
        at += snprintf(err + at, (size_t)(OPT_ERR - at), " %s", name_of(r->kind, i));
    return OPT_BAD;
}

/* In order, each once. */
static int parse_policy(struct perf_opts *o, const char *label, const char *val, char *err)
{
    char buf[256], *save = NULL;
    unsigned seen = 0;
    int at;

    o->n_policy = 0;
    snprintf(buf, sizeof(buf), "%s", val);
    for (char *s = strtok_r(buf, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        int i = name_index(K_POLICY, s);

        if (i < 0 || i >= ALGO_COUNT || seen >> i & 1) {
            o->n_policy = 0;
            break;
        }
        seen |= 1u << i;
        o->policy[o->n_policy++] = (enum coll_algo)i;
    }
    if (o->n_policy)
        return OPT_OK;
    at = snprintf(err, OPT_ERR, "%s: found \"%.64s\", expected a list without repetition of", label,
                  val);
    for (int i = 0; i < ALGO_COUNT && at < OPT_ERR; i++)
        at += snprintf(err + at, (size_t)(OPT_ERR - at), " %s", sched_algo_name((enum coll_algo)i));
    return OPT_BAD;
}

static int parse_uint(const struct option_row *r, const char *label, const char *val, unsigned *out,
                      char *err)
{
    char *end;

    errno = 0;
    unsigned long long v = strtoull(val, &end, 10);
    if (!isdigit((unsigned char)*val) || *end || errno || v < r->min || v > r->max) {
        snprintf(err, OPT_ERR, "%s: found \"%.64s\", expected a whole number from %llu to %llu",
                 label, val, (unsigned long long)r->min, (unsigned long long)r->max);
        return OPT_BAD;
    }
    *out = (unsigned)v;
    return OPT_OK;
}

static int parse_size(const struct option_row *r, const char *label, const char *val, uint64_t *out,
                      char *err)
{
    if (options_size(val, out) || *out < r->min || *out > r->max) {
        snprintf(err, OPT_ERR,
                 "%s: found \"%.64s\", expected a size such as 4096, 4K, 64KiB or 16M", label, val);
        return OPT_BAD;
    }
    return OPT_OK;
}

static int parse_seconds(const char *label, const char *val, double *out, char *err)
{
    char *end;
    double v = strtod(val, &end);

    if (end == val || *end || !(v > 0 && v <= 86400)) {
        snprintf(err, OPT_ERR, "%s: found \"%.64s\", expected seconds, such as 0.5", label, val);
        return OPT_BAD;
    }
    *out = v;
    return OPT_OK;
}

static int parse_value(struct perf_opts *o, const struct option_row *r, const char *val, char *err)
{
    void *at = (char *)o + r->offset;
    char label[40];

    if (r->c)
        snprintf(label, sizeof(label), "-%c", r->c);
    else
        snprintf(label, sizeof(label), "--%s", r->name);
    if (r->kind != K_FLAG && !val) {
        snprintf(err, OPT_ERR, "%s: found nothing, expected %s", label, r->arg);
        return OPT_BAD;
    }
    switch (r->kind) {
    case K_UINT:
        return parse_uint(r, label, val, at, err);
    case K_SIZE:
        return parse_size(r, label, val, at, err);
    case K_SECONDS:
        return parse_seconds(label, val, at, err);
    case K_TYPES:
    case K_OPS:
    case K_ALGOS:
        return parse_names(r, label, val, at, err);
    case K_POLICY:
        return parse_policy(o, label, val, err);
    case K_STRING:
        *(const char **)at = val;
        return OPT_OK;
    case K_FLAG:
        *(bool *)at = true;
        return OPT_OK;
    }
    return OPT_BAD;
}

/* ---- command line ---- */

/* Finds the option of arg ("-b", "-b4K", "--minbytes", "--minbytes=4K"); *val is a value within
 * arg, or NULL. */
static const struct option_row *find_row(const char *arg, const char **val)
{
    *val = NULL;
    for (size_t i = 0; i < ROWS; i++) {
        const struct option_row *r = &table[i];
        if (arg[1] == '-') {
            size_t n = strlen(r->name);
            if (strncmp(arg + 2, r->name, n) || (arg[2 + n] && arg[2 + n] != '='))
                continue;
            *val = arg[2 + n] ? arg + 3 + n : NULL;
            return r;
        }
        if (r->c && arg[1] == r->c) {
            *val = arg[2] ? arg + 2 : NULL;
            return r;
        }
    }
    return NULL;
}

static int positional(struct perf_opts *o, const char *arg, bool *have_coll, char *err)
{
    if (!o->conf) {
        o->conf = arg;
        return OPT_OK;
    }
    for (int k = 0; k < COLL_KINDS && !*have_coll; k++) {
        if (!strcmp(arg, coll_name(k))) {
            o->coll = (enum coll_kind)k;
            *have_coll = true;
            return OPT_OK;
        }
    }
    if (*have_coll) {
        snprintf(err, OPT_ERR, "found \"%.64s\" after the collective, expected an option", arg);
        return OPT_BAD;
    }
    int at = snprintf(err, OPT_ERR, "found \"%.64s\", expected a collective:", arg);
    for (int k = 0; k < COLL_KINDS && at < OPT_ERR; k++)
        at += snprintf(err + at, (size_t)(OPT_ERR - at), " %s", coll_name(k));
    return OPT_BAD;
}

/* A type whose error can be told in ULP, and a reduction that has an exact sum? */
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

/* What single values cannot show: an end of the range that was not given follows the one that
 * was. */
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

int options_parse(struct perf_opts *o, int argc, char **argv, char *err)
{
    bool have_coll = false;

    *o = (struct perf_opts){.iters = 20,
                            .warmup = 1,
                            .check = 1,
                            .types = 1u << DT_FP32,
                            .ops = 1u << OP_SUM,
                            .tree = PERF_TREES,
                            .mem = "host",
                            .max_wall = 0};
    *err = 0;
    for (int i = 1; i < argc; i++) {
        const char *val;
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (positional(o, argv[i], &have_coll, err))
                return OPT_BAD;
            continue;
        }
        const struct option_row *r = find_row(argv[i], &val);
        if (!r) {
            snprintf(err, OPT_ERR, "found \"%.64s\", expected an option (see -h)", argv[i]);
            return OPT_BAD;
        }
        if (!val && r->kind != K_FLAG && i + 1 < argc)
            val = argv[++i];
        if (parse_value(o, r, val, err))
            return OPT_BAD;
        if (o->help)
            return OPT_OK;
    }
    if (!o->conf) {
        snprintf(err, OPT_ERR, "found no CONF, expected the fabric's conf file");
        return OPT_BAD;
    }
    o->run_wall = o->max_wall > 0 ? o->max_wall / PERF_RUNS : PERF_RUN_WALL;
    o->max_wall = o->max_wall > 0 ? o->max_wall : PERF_ROW_WALL;
    return check_collective(o, err) ? OPT_BAD : check_range(o, err);
}

int options_force_algo(struct perf_opts *o, const char *name, char *err)
{
    const struct option_row *r = table;
    unsigned mask;

    if (!name || !*name)
        return OPT_OK;
    while (r->kind != K_ALGOS)
        r++;
    if (strchr(name, ',') || !strcmp(name, "all")) {
        snprintf(err, OPT_ERR, "TRIB_ALGO: found \"%.64s\", expected one algorithm", name);
        return OPT_BAD;
    }
    if (parse_names(r, "TRIB_ALGO", name, &mask, err))
        return OPT_BAD;
    o->algos = mask;
    o->forced = true;
    if (mask < 1u << ALGO_COUNT) { /* and nothing after it */
        o->policy[0] = (enum coll_algo)__builtin_ctz(mask);
        o->n_policy = 1;
    }
    return OPT_OK;
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

    if (o->sparse) /* what is not sent has its place too */
        bytes = o->max_bytes / o->sparse * nranks + nranks * 8;
    return (bytes + 4096) & ~(size_t)4095;
}

void options_usage(FILE *out)
{
    fprintf(
        out,
        "trib-perf CONF [COLLECTIVE] [options]\n"
        "Times collectives between ranks on the fabric CONF, which is up; checks every element.\n"
        "COLLECTIVE: all_reduce (default), reduce, broadcast, all_gather, reduce_scatter, "
        "alltoall,\n"
        "gather, scatter, sendrecv, barrier. Sizes, counts and bandwidths as in nccl-tests.\n\n");
    for (size_t i = 0; i < ROWS; i++) {
        const struct option_row *r = &table[i];
        char left[64];
        char dash[8] = "   ";
        if (r->c)
            snprintf(dash, sizeof(dash), "-%c,", r->c);
        snprintf(left, sizeof(left), "%s --%s %s", dash, r->name, r->arg ? r->arg : "");
        fprintf(out, "  %-28s %s\n", left, r->help);
    }
    fprintf(
        out,
        "\nTimes and bandwidths are in fabric time. Exit status: 0 every element was "
        "right, 1 it was not or the\n"
        "run failed, 2 the command line is wrong, 4 --max-wall left rows unmeasured or unchecked.\n"
        "TRIB_ALGO in the environment forces one algorithm, whatever --algo and --policy say.\n");
}
