/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary chaos cases: a refusal says why; an accepted case has ranks, operations and faults that
 * its fabric has, and what is saved of it reads as the same case. Cases that name a file may only name
 * a preset.
 */
#include "sim/chaos/case.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *__lsan_default_suppressions(void);

static struct chaos_cfg cfg = {.conf_dir = "conf"};

/* libconfig 1.5 loses the strings of a file whose syntax it refuses. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig.so\n";
}

static struct chaos_case *case_new(void)
{
    struct chaos_case *k = calloc(1, sizeof(*k));

    if (!k)
        abort();
    k->cfg = &cfg;
    return k;
}

static void case_free(struct chaos_case *k)
{
    fault_plan_free(&k->plan);
    fabric_free(k->own);
    free(k->conf_text);
    free(k);
}

static void check_job(const struct chaos_case *k, const struct chaos_job *j)
{
    check(j->nranks >= 1 && j->nranks <= CHAOS_RANKS && j->n_ops <= CHAOS_OPS, "more than fits");
    for (unsigned r = 0; r < j->nranks; r++)
        check(j->host_of_rank[r] < k->fab->n_hosts && j->process[r] < k->nprocs,
              "a rank on no host");
    check(j->tree + j->n_trees <= k->fab->n_trees && j->n_trees <= COLL_TREES, "a tree of none");
    check(j->algos && j->algos < 1u << ALGO_SCHEDULE && j->n_policy <= ALGO_SCHEDULE,
          "no algorithm");
    for (unsigned i = 0; i < j->n_ops; i++) {
        const struct job_op *o = &j->op[i];

        check(o->kind < COLL_KINDS && o->algo < ALGO_COUNT && arith_valid(o->op, o->type),
              "an operation that there is not");
        check(o->root < j->nranks && o->sparse <= j->nranks &&
                  o->count * dtype_size(o->type) <= j->bytes,
              "an operation that does not fit");
    }
}

static void check_case(const struct chaos_case *k)
{
    check(k->n_jobs >= 1 && k->n_jobs <= CHAOS_JOBS && k->nprocs <= CHAOS_PROCESSES,
          "more jobs than fit");
    for (unsigned i = 0; i < k->n_jobs; i++)
        check_job(k, &k->job[i]);
}

static void check_same_job(const struct chaos_job *a, const struct chaos_job *b)
{
    check(a->nranks == b->nranks && a->group == b->group && a->key == b->key &&
              a->tree == b->tree && a->n_trees == b->n_trees && a->window == b->window &&
              a->algos == b->algos && a->n_policy == b->n_policy && a->n_ops == b->n_ops &&
              a->start == b->start && a->stops_ps == b->stops_ps && a->bytes == b->bytes,
          "a saved job that is another one");
    for (unsigned i = 0; i < a->n_ops; i++) {
        const struct job_op *p = &a->op[i], *q = &b->op[i];

        check(p->kind == q->kind && p->algo == q->algo && p->type == q->type && p->op == q->op &&
                  p->count == q->count && p->root == q->root && p->sparse == q->sparse &&
                  p->skew_ps == q->skew_ps && p->seed == q->seed && p->in_place == q->in_place,
              "a saved operation that is another one");
    }
}

static void check_same(const struct chaos_case *a, const struct chaos_case *b)
{
    check(a->seed == b->seed && a->n_jobs == b->n_jobs && a->mcast == b->mcast &&
              a->plan.n == b->plan.n && !strcmp(a->found, b->found),
          "a saved case that is another one");
    for (unsigned i = 0; i < a->n_jobs; i++)
        check_same_job(&a->job[i], &b->job[i]);
}

static void check_saved(const struct chaos_case *k)
{
    struct chaos_case *again = case_new();
    char why[CHAOS_TEXT] = "", *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    check(out != NULL, "open_memstream");
    case_print(k, out, "");
    fclose(out);
    if (case_load_string(again, text, "again", why)) {
        fprintf(stderr, "%s\n%s\n", text, why);
        check(false, "a saved case that is refused");
    }
    check_same(k, again);
    case_free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chaos_case *k;
    char why[CHAOS_TEXT] = "", *text = malloc(size + 1);

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    if (strstr(text, "/dev") || strstr(text, "/proc") || strstr(text, "\\x")) {
        free(text);
        return 0;
    }
    k = case_new();
    if (case_load_string(k, text, "fuzz.case", why)) {
        check(*why, "a refusal without a reason");
    } else {
        check_case(k);
        check_saved(k);
    }
    case_free(k);
    free(text);
    return 0;
}
