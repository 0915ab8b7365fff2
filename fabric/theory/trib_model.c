/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-model: predictions for a fabric by closed forms; starts and simulates nothing.
 */
#include "system/atomic_output.h"
#include "base/shortage/enough.h"
#include "base/options.h"
#include "fabric/theory/cost_links.h"
#include "fabric/theory/theory.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE  (1ull << 40)
#define MAX_TABLE 4096
#define USUAL     (256u << 20) /* default size */

struct model_asked {
    const char *conf, *workload, *json;
    unsigned collective, node; /* 1: all_reduce, ...; 0: all. node: of list_nodes() */
    uint64_t min, max, factor, gpus, inner, sparse, bom;
};

/* ---- tables ---- */

static const char *list_collectives(unsigned i)
{
    return i ? model_collective(i - 1) : "all";
}

/* Devices that have switches of their own and so form nodes. */
static const struct gpu_device *node_at(unsigned i)
{
    for (unsigned d = 0; device_at(d); d++)
        if (device_at(d)->nvswitches && !i--)
            return device_at(d);
    return NULL;
}

static const char *list_nodes(unsigned i)
{
    return node_at(i) ? node_at(i)->name : NULL;
}

#define AT(f)   .offset = offsetof(struct model_asked, f)
#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])

static const struct option_row collectives[] = {
    {.c = 'g',
     .name = "ranks",
     .arg = "N",
     AT(gpus),
     .type = OPTION_U64,
     .min = 2,
     .max = FAB_MAX_HOSTS,
     .shown = "all",
     .help = "GPUs that take part, from the first on"},
    {.c = 'b',
     .name = "minbytes",
     .arg = "SIZE",
     AT(min),
     .type = OPTION_SIZE,
     .min = 1,
     .max = MAX_SIZE,
     .shown = "256M",
     .help = "smallest size, as for trib-perf: the whole vector; of alltoall what one GPU sends"},
    {.c = 'e',
     .name = "maxbytes",
     .arg = "SIZE",
     AT(max),
     .type = OPTION_SIZE,
     .min = 1,
     .max = MAX_SIZE,
     .shown = "256M",
     .help = "largest size"},
    {.c = 'f',
     .name = "stepfactor",
     .arg = "N",
     AT(factor),
     .type = OPTION_U64,
     .min = 2,
     .max = 1u << 20,
     .initial = "4",
     .help = "factor between sizes"},
    {.c = 'y',
     .name = "shards",
     .arg = "Y",
     AT(inner),
     .type = OPTION_U64,
     .min = 1,
     .max = FAB_MAX_HOSTS,
     .initial = "1",
     .help = "the array is sharded over Y neighbours, each with a collective of its own"},
    {.c = 'k',
     .name = "sparse",
     .arg = "K",
     AT(sparse),
     .type = OPTION_U64,
     .min = 1,
     .max = 1u << 20,
     .help = "alltoall: also to K shards only, chosen evenly (sparse) or drawn (drawn)"},
};
static const struct option_row subjects[] = {
    {.name = "workload",
     .arg = "FILE",
     AT(workload),
     .type = OPTION_TEXT,
     .help = "rooflines of that training step on CONF"},
    {.name = "bom",
     .arg = "GPUS",
     AT(bom),
     .type = OPTION_U64,
     .min = 1,
     .max = BOM_MAX_GPUS,
     .help = "switches, cables and tiers of a network of full bisection for so many GPUs, without "
             "CONF"},
    {.name = "node",
     .arg = "DEVICE",
     AT(node),
     .type = OPTION_CHOICE,
     .list = list_nodes,
     .initial = "h100",
     .help = "nodes of --bom"},
};
static const struct option_row output[] = {
    {.c = 'J',
     .name = "output_file",
     .also = "json",
     .arg = "FILE",
     AT(json),
     .type = OPTION_TEXT,
     .help = "write the results as JSON; -: to standard output, and the tables to standard error"},
};
static const struct option_row words[] = {
    {.arg = "CONF", AT(conf), .type = OPTION_TEXT, .help = "the fabric's conf file"},
    {.arg = "COLLECTIVE",
     AT(collective),
     .type = OPTION_CHOICE,
     .list = list_collectives,
     .initial = "all",
     .help = "the collective to predict"},
};
static const struct option_group groups[] = {
    {"Collectives", ROWS(collectives)},
    {"Workloads and bills of materials", ROWS(subjects)},
    {"Output", ROWS(output)},
    {NULL, NULL, 0},
};
static const struct option_note exits[] = {
    {"0", "fine"},
    {"1", "a file has mistakes, which are named on stderr"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-model",
    .summary = "print predictions for a fabric by closed forms",
    .synopsis = "[OPTION...] CONF [COLLECTIVE]\n[OPTION...] CONF --workload FILE\n--bom GPUS "
                "[--node DEVICE]",
    .text =
        "Prints levels and their bandwidths, the time of collectives by algorithm with the "
        "level that binds, rooflines of training, and bills of materials, by closed forms. "
        "Nothing is started or simulated. Times are bandwidth terms; for all-to-all a second table "
        "adds headers and latency.",
    .words = words,
    .n_words = 2,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-perf(1), trib-sim(1), trib-plan(1)",
};

/* ---- checks of several options ---- */

static int model_refuse(const char *what, const char *found, const char *expected)
{
    char err[OPTIONS_ERR];

    snprintf(err, sizeof(err), "%s: found \"%s\", expected %s", what, found, expected);
    options_wrong(&program, err);
    return -EINVAL;
}

/* Refuses by name options that this form of the command line would ignore. */
static int check_form(const struct model_asked *a, const struct option_result *r)
{
    static const char *const bom[] = {"bom", "node", "output_file", NULL}, *const workload[] = {
                                                                               "workload",
                                                                               "output_file", NULL};
    const struct option_row *too = a->bom        ? options_given_other(&program, r, bom)
                                   : a->workload ? options_given_other(&program, r, workload)
                                                 : NULL;
    const char *word = a->bom && r->n_words ? a->conf : r->n_words > 1 ? "a COLLECTIVE" : NULL;
    char err[OPTIONS_ERR];

    if (!a->bom && options_given(&program, r, "node"))
        snprintf(err, sizeof(err), "--node: found it without --bom, expected --bom GPUS with it");
    else if (a->bom && (word || too))
        snprintf(err, sizeof(err),
                 "--bom: found it with %s%s, expected --bom GPUS, --node and -J alone: it plans a "
                 "network of full bisection for so many GPUs and reads no conf; trib plan CONF has "
                 "the switches and cables of one",
                 word ? "" : "--", word ? word : too->name);
    else if (a->workload && (word || too))
        snprintf(err, sizeof(err), "--workload: found it with %s%s, expected CONF and -J alone",
                 word ? "" : "--", word ? word : too->name);
    else
        return 0;
    options_wrong(&program, err);
    return -EINVAL;
}

static int model_check(struct model_asked *a)
{
    char text[2][48];

    if (!a->max)
        a->max = a->min ? a->min : USUAL;
    if (!a->min)
        a->min = a->max < USUAL ? a->max : USUAL;
    if (!a->conf && !a->bom) {
        options_wrong(&program, "found no CONF, expected a conf file, or --bom GPUS");
        return -EINVAL;
    }
    if (a->min <= a->max)
        return 0;
    snprintf(text[0], sizeof(text[0]), "%" PRIu64, a->min);
    snprintf(text[1], sizeof(text[1]), "at most the %" PRIu64 " of -e", a->max);
    return model_refuse("-b", text[0], text[1]);
}

/* The members of the requested collectives; 0 or -EINVAL. */
static int members_ask(const struct model_asked *a, const struct fabric *f,
                       const struct cost_levels *l, struct model_ask *ask)
{
    uint64_t gpus = a->gpus ? a->gpus : f->n_hosts;
    char text[64];
    int uneven;

    snprintf(text, sizeof(text), "%" PRIu64, gpus);
    if (gpus > f->n_hosts)
        return model_refuse("-g", text, "at most the GPUs or hosts of the fabric");
    if (gpus % a->inner || a->inner * 2 > gpus) {
        snprintf(text, sizeof(text), "%" PRIu64 " of %" PRIu64 " GPUs", a->inner, gpus);
        return model_refuse("-y", text, "a whole part of them, a half at most");
    }
    *ask = (struct model_ask){{a->inner, gpus / a->inner}, (unsigned)a->sparse, NULL};
    uneven = model_uneven(l, ask->axis);
    if (uneven >= 0) {
        fprintf(stderr,
                "trib-model: found %" PRIu64 " GPUs in shards of %" PRIu64
                ", expected numbers that fill the groups of %u of level %s, or are a part of one; "
                "trib sim takes any\n",
                gpus, a->inner, l->lv[uneven].below, fab_role_name(l->lv[uneven].role));
        return -EINVAL;
    }
    return 0;
}

static void print_collectives(const struct model_asked *a, const struct cost_levels *l,
                              const struct model_ask *ask, json_t *json)
{
    struct model_row *rows = enough_memory(MAX_TABLE + MODEL_MAX_ROWS, sizeof(*rows));
    unsigned n = 0;

    for (unsigned i = 0; model_collective(i); i++) {
        if (a->collective && a->collective != i + 1)
            continue;
        /* cannot overflow: MAX_SIZE times the factor fits */
        for (uint64_t size = a->min; size <= a->max && n < MAX_TABLE; size *= a->factor)
            n += model_rows(l, model_collective(i), ask, size, rows + n);
    }
    model_print_rows(l, rows, n, stdout, json);
    model_print_bytes(l, ask->axis, a->max, stdout, json);
    free(rows);
}

static int model_workload(const struct model_asked *a, const struct fabric *f,
                          const struct cost_levels *l, json_t *json)
{
    static struct fab_errors errs;
    struct workload w;

    if (workload_load(&w, a->workload, &errs)) {
        fab_errors_print(&errs, stderr);
        return 1;
    }
    if (workload_gpus(&w) > f->n_hosts) {
        fprintf(stderr,
                "trib-model: found %u GPUs in %s, expected the %" PRIu64 " of workload %s\n",
                f->n_hosts, f->path, workload_gpus(&w), w.name);
        return 1;
    }
    model_print_workload(&w, l, stdout, json);
    return 0;
}

static int model_fabric(const struct model_asked *a, json_t *json)
{
    static struct fab_errors errs;
    struct fabric *f = fabric_load(a->conf, &errs);
    struct cost_levels l;
    struct cost_links links;
    struct model_ask ask;
    int rc = 0;

    if (!f) {
        fab_errors_print(&errs, stderr);
        return 1;
    }
    cost_levels(f, &l);
    if (!a->workload && members_ask(a, f, &l, &ask))
        rc = 2;
    if (!rc && !a->workload && cost_links(f, &l, ask.axis, &links)) {
        fprintf(stderr, "trib-model: no memory\n");
        rc = 1;
    }
    ask.links = &links;
    if (!rc) {
        printf("Fabric %s (%s): %u hosts\n", f->name, f->path, f->n_hosts);
        if (fabric_is_large(f))
            printf("Above %d hosts times are those of whole levels: single links are not counted\n",
                   FAB_RUN_HOSTS);
        json_object_set_new(json, "fabric", json_string(f->name));
        model_print_levels(f, &l, stdout, json);
        if (a->workload)
            rc = model_workload(a, f, &l, json);
        else
            print_collectives(a, &l, &ask, json);
    }
    fabric_free(f);
    return rc;
}

static int write_json(const struct model_asked *a, const json_t *json)
{
    int rc = a->json ? atomic_output_json(a->json, json, JSON_INDENT(2)) : 0;

    if (rc)
        fprintf(stderr, "trib-model: cannot write %s: %s\n", a->json, strerror(-rc));
    return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct model_asked a = {.conf = NULL};
    struct option_result r;
    json_t *json;
    int rc = 0;

    if (!options_begin(&program, (void *[]){&a}, argc, argv, &r, &rc))
        return rc;
    if (check_form(&a, &r) || model_check(&a))
        return 2;
    if (a.json && !(a.json = atomic_output_path(a.json))) {
        fprintf(stderr, "trib-model: -J: cannot write to standard output: %s\n", strerror(errno));
        return 1;
    }
    json = json_object();
    if (!json)
        return 1;
    if (a.bom) {
        const struct gpu_device *node = node_at(a.node);
        struct bom b = bom_of(a.bom, node);

        model_print_bom(&b, node, stdout, json);
    } else {
        rc = model_fabric(&a, json);
    }
    if (!rc)
        rc = write_json(&a, json);
    json_decref(json);
    return atomic_output_end("trib-model") && !rc ? 1 : rc;
}
