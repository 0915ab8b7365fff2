/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary fault plans for one fabric: a refusal names at least one mistake, an accepted plan names
 * only what the fabric and the job have, in order of time, and what is printed of it reads as the
 * same plan.
 */
#include "base/units.h"
#include "fabric/conf/faults.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *__lsan_default_suppressions(void);

#define RANKS 8u

static const char conf[] =
    "name = \"ls\"; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 4; host_link = { rate "
    "= "
    "\"100Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = \"100Gb/s\"; latency = \"300ns\"; "
    "}; }; reduce = { groups = 2; slots = 32; window = 8; };";

static struct fabric *fab;

/* libconfig 1.5 loses the strings of a file whose syntax it refuses. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig.so\n";
}

static void check_event(const struct fault_event *e)
{
    static char line[256];
    unsigned n = e->of == FAULT_LINK ? fab->n_links : e->of == FAULT_RANK ? RANKS : fab->n_nodes;

    check(e->which < n || (e->of == FAULT_LINK && e->which == FAULT_ALL), "nothing of the fabric");
    check(e->of != FAULT_HOST || fab->nodes[e->which].kind == FAB_HOST, "a host that is none");
    check(e->of != FAULT_AN || fab->nodes[e->which].kind == FAB_SWITCH, "a switch that is none");
    check(e->loss <= 1 && e->dup <= 1 && e->reorder <= 1 && e->corrupt <= 1, "no probability");
    check(e->at_ps >= FAULT_ALWAYS && e->at_ps <= PS_PER_S, "no time");
    fault_event_text(e, fab, line, sizeof(line));
    check(strlen(line) < sizeof(line), "a line without end");
}

/* Values were printed with a few digits. */
static bool same(const struct fault_event *a, const struct fault_event *b)
{
    const double pa[] = {a->loss, a->dup, a->reorder, a->corrupt},
                 pb[] = {b->loss, b->dup, b->reorder, b->corrupt};

    for (unsigned i = 0; i < 4; i++)
        if (pa[i] - pb[i] > 1e-6 || pb[i] - pa[i] > 1e-6)
            return false;
    return a->at_ps == b->at_ps && a->of == b->of && a->which == b->which && a->down == b->down &&
           a->up == b->up && a->clear == b->clear && a->jitter_ps == b->jitter_ps &&
           a->seed == b->seed && a->restart_ps == b->restart_ps && a->slow == b->slow &&
           a->die == b->die && a->told_ps == b->told_ps && a->mbufs == b->mbufs;
}

static void check_printed(const struct fault_plan *p, struct fab_errors *errs)
{
    struct fault_plan again;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    check(out != NULL, "open_memstream");
    fault_plan_print(p, fab, out);
    fclose(out);
    if (fault_plan_load_string(&again, text, "again", fab, RANKS, errs)) {
        fprintf(stderr, "%s\n", text);
        fab_errors_print(errs, stderr);
        check(false, "a printed plan that is refused");
    }
    check(again.n == p->n, "a printed plan with another number of events");
    for (unsigned i = 0; i < p->n; i++)
        if (!same(&p->e[i], &again.e[i])) {
            fprintf(stderr, "%s\n", text);
            check(false, "a printed plan that is another one");
        }
    fault_plan_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fab_errors errs;
    char *text = malloc(size + 1);
    struct fault_plan p;

    if (!fab)
        fab = fabric_load_string(conf, "fuzz.conf", NULL);
    if (!text || !fab)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    if (fault_plan_load_string(&p, text, "fuzz.conf", fab, RANKS, &errs)) {
        check(errs.n > 0 && !p.n, "a refusal without a reason");
        free(text);
        return 0;
    }
    free(text);
    for (unsigned i = 0; i < p.n; i++) {
        check_event(&p.e[i]);
        check(!i || p.e[i - 1].at_ps <= p.e[i].at_ps, "events out of order");
    }
    check_printed(&p, &errs);
    fault_plan_free(&p);
    return 0;
}
