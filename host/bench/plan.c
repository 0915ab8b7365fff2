/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans a sweep before ranks are started: hosts of ranks, aggregation trees, and the algorithms
 * that the collective has and the fabric can run. Refuses sweeps that cannot work.
 */
#include "host/bench/nvls_hw.h"
#include "host/bench/sweep.h"
#include "host/bench/verify/layout.h"

#include "host/bench/buffer.h"
#include "host/bench/trees.h"

#include "collective/sched.h"
#include "include/tributary/protocol.h"

#include <errno.h>
#include <string.h>

_Static_assert(FAB_MAX_HOSTS <= FAB_MAX_MEMBERS, "a rank on every host is not too many");

static int place_ranks(struct sweep *s, char *err)
{
    unsigned hosts = s->fab->n_hosts;

    s->nranks = s->o->ranks ? s->o->ranks : hosts;
    if (!hosts) {
        snprintf(err, OPT_ERR, "%s: found no host, expected at least one", s->o->conf);
        return -EINVAL;
    }
    unsigned per_host = (s->nranks + hosts - 1) / hosts;
    if (per_host > s->fab->slots_per_host) {
        snprintf(err, OPT_ERR,
                 "%s: found %u, which is %u ranks a host, expected at most %u (%u hosts, "
                 "slots_per_host %u)",
                 s->o->file ? "--schedule" : "-g", s->nranks, per_host,
                 hosts * s->fab->slots_per_host, hosts, s->fab->slots_per_host);
        return -EINVAL;
    }
    if (s->o->root >= s->nranks) {
        snprintf(err, OPT_ERR, "-r: found %u, expected a rank below %u", s->o->root, s->nranks);
        return -EINVAL;
    }
    if (s->o->sparse > s->nranks) {
        snprintf(err, OPT_ERR, "-k: found %u, expected at most the %u ranks", s->o->sparse,
                 s->nranks);
        return -EINVAL;
    }
    for (unsigned r = 0; r < s->nranks; r++) {
        const struct fab_node *host = &s->fab->nodes[s->fab->hosts[r / per_host]];

        s->host_of_rank[r] = (uint16_t)(r / per_host);
        if (host->outside && !s->o->rsh) {
            snprintf(err, OPT_ERR,
                     "-g: found rank %u on %s, which is outside, expected --rsh CMD that starts it "
                     "there, or fewer ranks",
                     r, host->name);
            return -EINVAL;
        }
    }
    return 0;
}

/* ---- trees ---- */

static int choose_trees(struct sweep *s, char *err)
{
    s->n_trees = 0;
    if (s->o->tree == PERF_TREES) {
        s->n_trees = trees_choose(s->fab, s->nranks, s->host_of_rank, s->tree);
        return 0;
    }
    if (s->o->tree >= s->fab->n_trees) {
        snprintf(err, OPT_ERR, "--tree: found %u, expected a tree below %u", s->o->tree,
                 s->fab->n_trees);
        return -EINVAL;
    }
    s->tree[s->n_trees++] = (uint16_t)s->o->tree;
    return 0;
}

/* ---- algorithms ---- */

/* Whether the collective has the algorithm, on some fabric. */
static bool collective_has(const struct sweep *s, enum coll_algo a)
{
    const struct sched_in in = {
        .kind = s->o->coll, .algo = a, .nranks = 1, .count = 1, .mtu = s->fab->mtu};
    struct sched sc;
    int rc;

    if (a == ALGO_SCHEDULE)
        return s->o->file;
    rc = sched_init(&sc, &in);

    if (!rc)
        sched_free(&sc);
    return rc != -ENOTSUP;
}

/* Whether the algorithm cannot use staged buffers: NVSwitches and protocols access buffers
 * themselves. */
static bool beyond_gpus(const struct sweep *s, enum coll_algo a)
{
    return s->o->gpu != BUFFER_HOST &&
           (a == ALGO_NVLS || a == ALGO_NVLS_SHARP || coll_is_protocol(a));
}

/* Whether the fabric can run the algorithm: the model predicts it for a few elements. */
static bool fabric_has(const struct sweep *s, enum coll_algo a)
{
    struct coll_args args = {.kind = s->o->coll,
                             .algo = a,
                             .count = s->o->coll == COLL_BARRIER ? 0 : 64,
                             .type = DT_FP32,
                             .root = s->o->root,
                             .sparse = s->o->sparse,
                             .mm_self = s->o->mm_self,
                             .file = s->o->file};
    struct coll_prediction p;

    args.send = &args;
    args.recv = &p;
    if (a == ALGO_SHARP && !s->n_trees)
        return false;
    if (beyond_gpus(s, a))
        return false;
    return coll_predict_trees(s->fab, &args, s->nranks, s->host_of_rank, s->tree, s->n_trees,
                              s->o->window, &p) != -ENOTSUP;
}

static void plan_list(unsigned mask, char *text, size_t size)
{
    size_t at = 0;

    *text = 0;
    for (int a = 0; a < ALGOS_ASKED && at < size; a++)
        if (mask >> a & 1)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
                                   sched_algo_name((enum coll_algo)a));
}

/* Names the first algorithm that cannot be run, and what can. */
static int plan_refuse(const struct sweep *s, const char *option, unsigned bad, char *err)
{
    enum coll_algo a = (enum coll_algo)__builtin_ctz(bad);
    char can[128];

    if (s->o->forced)
        option = "TRIB_ALGO";
    plan_list(strcmp(option, "--policy") ? s->exist | 1u << ALGO_AUTO : s->exist, can, sizeof(can));
    if (a == ALGO_SCHEDULE && !s->o->file)
        snprintf(err, OPT_ERR, "%s: found schedule, expected --schedule FILE with it", option);
    else if (!collective_has(s, a))
        snprintf(err, OPT_ERR, "%s: found %s, which %s does not have, expected %s", option,
                 sched_algo_name(a), coll_name(s->o->coll), can);
    else if (beyond_gpus(s, a))
        snprintf(err, OPT_ERR,
                 "%s: found %s, expected %s with --mem %s: %s do not reach memory that is staged",
                 option, sched_algo_name(a), can, s->o->mem,
                 coll_is_protocol(a) ? "protocols" : "NVSwitches");
    else if (a == ALGO_SHARP && !s->fab->n_trees)
        snprintf(err, OPT_ERR, "%s: found sharp, expected %s: no switch of %s reduces", option, can,
                 s->o->conf);
    else if (coll_is_protocol(a) && s->nranks > TRIB_RANKS)
        snprintf(err, OPT_ERR,
                 "%s: found %s with %u ranks, expected at most %d of a protocol, or %s", option,
                 sched_algo_name(a), s->nranks, TRIB_RANKS, can);
    else
        snprintf(err, OPT_ERR, "%s: found %s, which these %u ranks of %s cannot run, expected %s",
                 option, sched_algo_name(a), s->nranks, s->o->conf, can);
    return -EINVAL;
}

static void find_algos(struct sweep *s, unsigned among)
{
    s->exist = 0;
    for (int a = 0; a < ALGO_COUNT; a++)
        if ((among >> a & 1) && collective_has(s, (enum coll_algo)a) &&
            fabric_has(s, (enum coll_algo)a))
            s->exist |= 1u << a;
}

/* Decides about rows of this machine's own GPUs. If the GPUs cannot run them, the other algorithms
 * run and the report says so; without other algorithms the sweep is refused. */
static int choose_hw(struct sweep *s, unsigned others, char *err)
{
    s->by_hw = !nvls_hw_can(s->o, s->nranks, s->no_hw);
    if (s->by_hw || others)
        return 0;
    snprintf(err, OPT_ERR, "%s: nvls-hw: %.*s", s->o->forced ? "TRIB_ALGO" : "--algo", OPT_ERR - 32,
             s->no_hw);
    return -EINVAL;
}

static int choose_algos(struct sweep *s, unsigned asked, char *err)
{
    const unsigned usual = 1u << ALGO_RING | 1u << ALGO_SHARP;
    unsigned policy = 0, unnamed;

    for (unsigned i = 0; i < s->o->n_policy; i++)
        policy |= 1u << s->o->policy[i];
    /* Do not predict algorithms that were not requested: that may take longer than the run, as
     * direct sends millions of messages among thousands of ranks. */
    bool named = asked && asked != ALGOS_ALL && !(asked >> ALGO_AUTO & 1);

    unnamed = ALGOS_ALL | ((asked | policy) & COLL_PROTOCOLS);

    find_algos(s, named ? asked | policy : unnamed);
    if (named && ((asked | policy) & ~s->exist))
        find_algos(s, ~0u);
    if (!s->exist) {
        snprintf(err, OPT_ERR, "%s: found no algorithm that these %u ranks of %s can run",
                 coll_name(s->o->coll), s->nranks, s->o->conf);
        return -EINVAL;
    }
    if (policy & ~s->exist)
        return plan_refuse(s, "--policy", policy & ~s->exist, err);
    if (!asked && policy)
        asked = 1u << s->o->policy[0];
    else if (!asked)
        asked = s->exist >> ALGO_RING & 1 ? s->exist & usual : s->exist;
    else if (asked == ALGOS_ALL)
        asked = s->exist;
    s->algos = asked;
    s->set_up = (asked & 1u << ALGO_AUTO ? s->exist : asked) | policy;
    asked &= ~(s->exist | 1u << ALGO_AUTO);
    return asked ? plan_refuse(s, "--algo", asked, err) : 0;
}

/* ---- rows ---- */

static void list_ops(unsigned types, char *text, size_t size)
{
    size_t at = 0;

    for (int op = 0; op < OP_COUNT && at < size; op++)
        for (int t = 0; t < DT_COUNT; t++)
            if ((types >> t & 1) && arith_valid((enum redop)op, (enum dtype)t)) {
                at += (size_t)snprintf(text + at, size - at, " %s", redop_name((enum redop)op));
                break;
            }
}

/* Refuses a sweep without rows, which would pass every check. */
static int check_rows(const struct sweep *s, char *err)
{
    uint64_t sizes[PERF_MAX_SIZES], least = UINT64_MAX;
    unsigned n = options_sizes(s->o, sizes, PERF_MAX_SIZES);
    unsigned blocks = layout_blocks(s->o->coll, s->nranks, s->o->sparse);
    const char *type = NULL;
    char ops[128] = "", of[40] = "";

    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++)
            if (sweep_wants(s, (enum dtype)t, (enum redop)op) &&
                dtype_size((enum dtype)t) * blocks < least) {
                least = dtype_size((enum dtype)t) * blocks;
                type = dtype_name((enum dtype)t);
            }
    if (!type) {
        list_ops(s->o->types, ops, sizeof(ops));
        snprintf(err, OPT_ERR,
                 "-o: found no reduction that the types of -d have, expected one of%s", ops);
        return -EINVAL;
    }
    if (s->o->coll == COLL_BARRIER || sizes[n - 1] >= least)
        return 0;
    if (blocks > 1)
        snprintf(of, sizeof(of), " for each of %u ranks", blocks);
    snprintf(err, OPT_ERR, "-b: found %llu, expected at least %llu bytes, one element of %s%s",
             (unsigned long long)sizes[n - 1], (unsigned long long)least, type, of);
    return -EINVAL;
}

/* "sum of int32 float, min of int32". */
static void list_does(const struct trib_protocol *p, char *text, size_t size)
{
    size_t at = 0;

    *text = 0;
    for (int op = 0; op < OP_COUNT && at < size; op++) {
        unsigned n = 0;

        for (int t = 0; t < DT_COUNT && at < size; t++)
            if (coll_protocol_does(p, (enum dtype)t, (enum redop)op)) {
                if (!n++)
                    at += (size_t)snprintf(text + at, size - at, "%s%s of", at ? ", " : "",
                                           redop_name((enum redop)op));
                at += (size_t)snprintf(text + at, at < size ? size - at : 0, " %s", dtype_name(t));
            }
    }
}

/* Refuses rows that a requested protocol does not do. */
static int check_protocols(const struct sweep *s, char *err)
{
    char does[160];

    for (enum coll_algo a = ALGO_PROTOCOL; a <= ALGO_PROTOCOL_LAST; a++)
        for (int t = 0; s->algos >> a & 1 && t < DT_COUNT; t++)
            for (int op = 0; op < OP_COUNT; op++) {
                const struct trib_protocol *p = coll_protocol(a);

                if (!sweep_wants(s, (enum dtype)t, (enum redop)op) ||
                    coll_protocol_does(p, (enum dtype)t, (enum redop)op))
                    continue;
                list_does(p, does, sizeof(does));
                snprintf(err, OPT_ERR, "--algo: found %s for %s of %s, expected %s", p->name,
                         redop_name((enum redop)op), dtype_name((enum dtype)t), does);
                return -EINVAL;
            }
    return 0;
}

int sweep_plan(struct sweep *s, char *err)
{
    unsigned hw = s->o->algos & 1u << PERF_NVLS_HW, others = s->o->algos & ~hw;
    int rc = place_ranks(s, err);

    if (!rc)
        rc = check_rows(s, err);

    if (!rc)
        rc = choose_trees(s, err);
    if (!rc && (others || !hw))
        rc = choose_algos(s, others, err);
    if (!rc)
        rc = check_protocols(s, err);
    return !rc && hw ? choose_hw(s, others, err) : rc;
}
