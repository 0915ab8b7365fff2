/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary jobs files for one fabric: a refusal names at least one mistake, an accepted file has
 * ranks on hosts of the fabric, no more of a host than it has slots, and operations that the model
 * can time.
 */
#include "sim/jobs/jobs.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *__lsan_default_suppressions(void);

static const char conf[] =
    "name = \"ls\"; slots_per_host = 3; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; "
    "host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = \"100Gb/s\"; "
    "latency = \"300ns\"; }; }; reduce = { groups = 2; slots = 32; window = 8; };";

static struct fabric *fab;

/* libconfig 1.5 loses the strings of a file whose syntax it refuses. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig.so\n";
}

static void check_job(const struct jobs_job *j)
{
    check(j->nranks >= 2 && j->n_ops >= 1 && j->n_ops <= JOBS_OPS, "a job of nothing");
    check(j->n_trees <= COLL_TREES && j->n_policy <= ALGO_COUNT, "too many trees or algorithms");
    check(j->die_ps < 0 || j->die_ps > j->start_ps, "a death before the start");
    for (unsigned i = 0; i < j->n_trees; i++)
        check(j->tree[i] < fab->n_trees, "a tree that the fabric does not have");
    for (unsigned k = 0; k < j->n_ops; k++) {
        const struct jobs_op *op = &j->op[k];

        check(op->algo < ALGO_COUNT && op->type < DT_COUNT && op->op < OP_COUNT, "no algorithm");
        check(op->kind == COLL_BARRIER || (op->count && op->count <= op->bytes), "no elements");
        check(op->model_ps > 0 && op->root < JOBS_RANKS, "no time");
        check(!coll_rooted(op->kind) || op->root < j->nranks, "a root outside");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fab_errors errs;
    char *text = malloc(size + 1);
    unsigned taken[8] = {0};
    struct jobs_plan p;
    int rc;

    if (!fab)
        fab = fabric_load_string(conf, "fuzz.conf", NULL);
    if (!text || !fab)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    rc = jobs_load_string(&p, text, "fuzz.conf", fab, &errs);
    free(text);
    if (rc) {
        check(errs.n > 0 && !p.n && !p.host_of_rank, "a refusal without a reason");
        return 0;
    }
    check(p.n >= 1 && p.n <= JOBS_MAX, "no jobs");
    for (unsigned i = 0; i < p.n; i++)
        check_job(&p.job[i]);
    for (unsigned r = 0; r < p.nranks; r++) {
        check(p.host_of_rank[r] < fab->n_hosts, "a host that the fabric does not have");
        check(++taken[p.host_of_rank[r]] <= fab->slots_per_host, "more processes than slots");
    }
    jobs_free(&p);
    return 0;
}
