/* SPDX-License-Identifier: BSD-3-Clause */
/* A chaos case, written as a file. */
#include "host/coll/alg/sched.h"
#include "sim/chaos/case.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A string of libconfig, one literal for each line of the text. */
static void put_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, "%s = \"", key);
    for (const char *s = text; *s; s++)
        if (*s == '\n')
            fprintf(out, "\\n%s", s[1] ? "\"\n    \"" : "");
        else if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else
            fputc(*s, out);
    fprintf(out, "\";\n");
}

static void put_fabric(const struct chaos_case *k, FILE *out)
{
    if (k->conf_text)
        put_text(out, "conf_text", k->conf_text);
    else
        put_text(out, "conf", k->conf);
}

static void put_ranks(const struct chaos_case *k, FILE *out)
{
    fprintf(out, "seed = \"0x%016" PRIx64 "\"; # of the links' draws\nhosts = [", k->seed);
    for (unsigned r = 0; r < k->nranks; r++)
        fprintf(out, "%s%u", r ? ", " : "", k->host_of_rank[r]);
    fprintf(out, "]; # of ranks\ngroup = %u;\nkey = \"0x%016" PRIx64 "\";\n", k->group, k->key);
    fprintf(out, "first_tree = %u;\ntrees = %u;\nwindow = %u;\nalgorithms = [", k->tree, k->n_trees,
            k->window);
    for (unsigned a = 0, n = 0; a < ALGO_COUNT; a++)
        if (k->algos >> a & 1)
            fprintf(out, "%s\"%s\"", n++ ? ", " : "", sched_algo_name((enum coll_algo)a));
    fprintf(out, "];\npolicy = [");
    for (unsigned i = 0; i < k->n_policy; i++)
        fprintf(out, "%s\"%s\"", i ? ", " : "", sched_algo_name(k->policy[i]));
    fprintf(out, "];\n");
}

static void put_op(const struct job_op *op, FILE *out)
{
    fprintf(out,
            "{ collective = \"%s\"; algorithm = \"%s\"; type = \"%s\"; op = \"%s\"; count = %zu; "
            "root = %u;\n      ",
            coll_name(op->kind), sched_algo_name(op->algo), dtype_name(op->type),
            redop_name(op->op), op->count, op->root);
    if (op->sparse)
        fprintf(out, "sparse = %u; ", op->sparse);
    if (op->in_place)
        fprintf(out, "in_place = true; ");
    if (op->mm_self)
        fprintf(out, "mm_self = true; ");
    if (op->skew_ps)
        fprintf(out, "skew_ps = %" PRId64 "; ", op->skew_ps);
    fprintf(out, "seed = \"0x%016" PRIx64 "\"; }", op->seed);
}

void case_print(const struct chaos_case *k, FILE *out, const char *verdict)
{
    fprintf(out, "# SPDX-License-Identifier: BSD-3-Clause\n# %s\n# %s%s\n", k->shape,
            verdict ? "Verdict: " : "It did not end: these operations had begun.",
            verdict ? verdict : "");
    put_text(out, "found", k->found);
    put_fabric(k, out);
    put_ranks(k, out);
    fprintf(out, "operations = (");
    for (unsigned i = 0; i < k->n_ops; i++) {
        fprintf(out, "%s\n    ", i ? "," : "");
        put_op(&k->op[i], out);
    }
    fprintf(out, " );\n");
    fault_plan_print(&k->plan, k->fab, out);
}

int case_save(const struct chaos_case *k, const char *path, const char *verdict)
{
    FILE *out = fopen(path, "we");

    if (!out)
        return -errno;
    case_print(k, out, verdict);
    return fclose(out) ? -errno : 0;
}
