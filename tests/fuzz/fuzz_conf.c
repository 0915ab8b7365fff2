/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary conf files: no text crashes a loader, a refusal names at least one mistake, and a
 * fabric that was accepted can be planned and walked. @include is refused, so no input reads a
 * file.
 */
#include "fabric/conf/workload.h"
#include "fabric/fabric.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libconfig 1.5 loses the strings of a file whose syntax it refuses; a loader of one file per
 * process does not mind. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig.so\n";
}

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

/* Every route of an accepted fabric ends at its destination. */
static void walk(const struct fabric *f)
{
    uint32_t path[64];

    for (unsigned i = 0; i < f->n_hosts && i < 8; i++) {
        for (unsigned j = 0; j < f->n_hosts && j < 8; j++) {
            unsigned n = fabric_path(f, f->hosts[i], f->hosts[j], path, 64);
            struct fab_channel ch[FAB_MAX_HOST_PORTS];

            check(fabric_channels(f, i, j, ch, FAB_MAX_HOST_PORTS) > 0, "hosts without a channel");
            check(i == j ? n == 0 : n > 0 || f->n_switches > 60, "a host that cannot be reached");
        }
    }
    for (unsigned t = 0; t < f->n_trees; t++) {
        struct fab_members m = {.ranks_per_host = 1};
        struct fab_child c[4];
        uint16_t top;

        for (unsigned i = 0; i < f->n_hosts; i++)
            if (f->trees[t].parent[f->hosts[i]] != FAB_NONE)
                fab_members_add(&m, i);
        top = fab_group_top(f, &f->trees[t], &m);
        check(!fab_members_count(&m) || /* hosts beyond the largest group */
                  (top != FAB_NONE && fab_group_children(f, &f->trees[t], top, &m, c, 4) > 0),
              "a tree without a top");
    }
}

/* A workload that was accepted has parameters, GPUs and whole microbatches. */
static void read_workload(const char *text, struct fab_errors *errs)
{
    struct workload w;

    if (workload_load_string(&w, text, "fuzz.conf", errs)) {
        check(errs->n > 0, "a refusal without a reason");
        return;
    }
    check(workload_gpus(&w) > 0 && workload_stage_layers(&w) > 0, "a workload without GPUs");
    check(workload_microbatch_tokens(&w) * w.dp * w.microbatches == w.batch_tokens,
          "a microbatch that is not whole");
    check(workload_params(&w) >= workload_active_params(&w), "more active parameters than all");
    check(workload_step_flops(&w) > 0 && workload_total_seconds(&w) >= 0, "no work");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fab_errors errs;
    static FILE *null;
    char *text = malloc(size + 1);
    struct fabric *f;

    if (!null)
        null = fopen("/dev/null", "w");
    if (!text || !null)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    read_workload(text, &errs);
    f = fabric_load_string(text, "fuzz.conf", &errs);
    free(text);
    if (!f) {
        check(errs.n > 0, "a refusal without a reason");
        fab_errors_print(&errs, null);
        return 0;
    }
    check(errs.total == 0, "an accepted file with mistakes");
    fabric_plan(f, true, null);
    fabric_plan(f, false, null);
    walk(f);
    fabric_free(f);
    return 0;
}
