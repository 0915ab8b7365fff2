/* SPDX-License-Identifier: BSD-3-Clause */
/* A chaos case, written as a file. */
#include "collective/sched.h"
#include "sim/chaos/case.h"
#include "system/own_path.h"

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

static void put_list(const char *key, const unsigned *v, unsigned n, FILE *out)
{
    fprintf(out, "%s = [", key);
    for (unsigned i = 0; i < n; i++)
        fprintf(out, "%s%u", i ? ", " : "", v[i]);
    fprintf(out, "];");
}

static void put_hosts(const struct chaos_job *j, FILE *out)
{
    unsigned hosts[CHAOS_RANKS];

    for (unsigned r = 0; r < j->nranks; r++)
        hosts[r] = j->host_of_rank[r];
    if (j->shares)
        put_list("processes", j->process, j->nranks, out);
    else
        put_list("hosts", hosts, j->nranks, out);
}

static void put_job(const struct chaos_job *j, FILE *out)
{
    fprintf(out, "bytes = %zu;\ngroup = %u;\nkey = \"0x%016" PRIx64 "\";\n", j->bytes, j->group,
            j->key);
    fprintf(out, "first_tree = %u;\ntrees = %u;\nwindow = %u;\nalgorithms = [", j->tree, j->n_trees,
            j->window);
    for (unsigned a = 0, n = 0; a < CHAOS_ALGOS; a++)
        if (j->algos >> a & 1)
            fprintf(out, "%s\"%s\"", n++ ? ", " : "", sched_algo_name((enum coll_algo)a));
    fprintf(out, "];\npolicy = [");
    for (unsigned i = 0; i < j->n_policy; i++)
        fprintf(out, "%s\"%s\"", i ? ", " : "", sched_algo_name(j->policy[i]));
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

static void put_ops(const struct chaos_job *j, FILE *out)
{
    fprintf(out, "operations = (");
    for (unsigned i = 0; i < j->n_ops; i++) {
        fprintf(out, "%s\n    ", i ? "," : "");
        put_op(&j->op[i], out);
    }
    fprintf(out, " );\n");
}

static void put_others(const struct chaos_case *k, FILE *out)
{
    if (k->n_jobs == 1)
        return;
    fprintf(out, "jobs = (");
    for (unsigned i = 1; i < k->n_jobs; i++) {
        fprintf(out, "%s\n{ start = \"%s\";\n", i > 1 ? "," : "",
                chaos_start_name(k->job[i].start));
        put_hosts(&k->job[i], out);
        fprintf(out, "\n");
        if (k->job[i].stops_ps)
            fprintf(out, "stops_ps = %" PRId64 ";\n", k->job[i].stops_ps);
        put_job(&k->job[i], out);
        put_ops(&k->job[i], out);
        fprintf(out, "}");
    }
    fprintf(out, " );\n");
}

void case_print(const struct chaos_case *k, FILE *out, const char *verdict)
{
    fprintf(out, "# SPDX-License-Identifier: BSD-3-Clause\n# %s\n# %s%s\n", k->shape,
            verdict ? "Verdict: " : "It did not end: these operations had begun.",
            verdict ? verdict : "");
    put_text(out, "found", k->found);
    put_fabric(k, out);
    fprintf(out, "seed = \"0x%016" PRIx64 "\"; # of the links' draws\n", k->seed);
    put_hosts(&k->job[0], out);
    fprintf(out, " # of ranks\n");
    put_job(&k->job[0], out);
    put_ops(&k->job[0], out);
    put_others(k, out);
    if (k->mcast)
        fprintf(out, "multicast = \"0x%016" PRIx64 "\";\n", k->mcast);
    if (k->slices)
        fprintf(out, "slices = \"0x%016" PRIx64 "\";\n", k->slices);
    fault_plan_print(&k->plan, k->fab, out);
}

int case_save(const struct chaos_case *k, const char *path, const char *verdict)
{
    int fd = own_output_open(path, 0);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

    if (!out)
        return fd < 0 ? fd : -ENOMEM;
    case_print(k, out, verdict);
    return fclose(out) ? -errno : 0;
}
