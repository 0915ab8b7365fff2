/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-model: what theory says of a fabric, by closed forms; nothing is started or simulated.
 * Exit code 0: fine; 1: mistakes in a file, named on stderr; 2: wrong usage.
 */
#include "base/units.h"
#include "base/atomic_output.h"
#include "fabric/theory/theory.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a)    (sizeof(a) / sizeof((a)[0]))
#define MAX_SIZE  (1ull << 40)
#define MAX_TABLE 4096

static const char usage[] =
    "Usage: trib model CONF [COLLECTIVE] [OPTION...]\n"
    "       trib model --bom GPUS [--node DEVICE]\n"
    "What theory says, without running anything: levels and their bandwidths, the time of\n"
    "all_reduce, all_gather, reduce_scatter and alltoall (all, if none is named) by algorithm "
    "with\n"
    "the level that binds, rooflines of training, bills of materials. Times are bandwidth terms.\n"
    "  -g N             GPUs that take part, from the first on (all)\n"
    "  -b, -e SIZE      smallest and largest size (256M); -f N: factor between them (4). As for\n"
    "                   trib perf: the whole vector; of alltoall what one GPU sends\n"
    "  -y Y             the array is sharded over Y neighbours, each with a collective of its own\n"
    "  -k K             alltoall: also to K shards only, chosen evenly (sparse) or drawn (drawn)\n"
    "  --workload FILE  rooflines of that training step on CONF (conf/workloads/)\n"
    "  --bom GPUS       switches, cables and tiers for so many GPUs, in nodes of --node (h100)\n"
    "  -J, --json FILE  the same as JSON\n";

struct asked {
    const char *conf, *collective, *workload, *json;
    const struct device *node;
    uint64_t min, max, factor, gpus, inner, sparse, bom;
    bool help;
};

static int bad(const char *what, const char *found, const char *expected)
{
    fprintf(stderr, "trib model: %s: found \"%s\", expected %s\n", what, found, expected);
    return -EINVAL;
}

/* As trib perf reads sizes: K, M and G are binary, digits alone are bytes. */
static int read_size(const char *s, uint64_t *v)
{
    char text[40];
    size_t n = strlen(s);
    const char *more = !n || n > 30                     ? NULL
                       : strchr("0123456789", s[n - 1]) ? "B"
                       : strchr("KMG", s[n - 1])        ? "iB"
                                                        : "";

    if (!more)
        return -EINVAL;
    snprintf(text, sizeof(text), "%s%s", s, more);
    return parse_size(text, v);
}

static int read_int(const char *s, uint64_t *v)
{
    char *end;

    errno = 0;
    *v = strtoull(s, &end, 10);
    return *s < '0' || *s > '9' || *end || errno ? -EINVAL : 0;
}

static int read_node(const char *s, struct asked *a)
{
    char list[120] = "";

    a->node = device_find(s);
    if (a->node && a->node->nvswitches)
        return 0;
    for (unsigned i = 0; device_at(i); i++)
        if (device_at(i)->nvswitches)
            snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
                     device_at(i)->name);
    return bad("--node", s, list);
}

static int read_option(const char *name, const char *value, struct asked *a)
{
    const struct {
        const char *name;
        uint64_t *v, lo, hi;
        bool size;
        const char *expected;
    } numbers[] = {
        {"-b", &a->min, 1, MAX_SIZE, true, "a size from 1 to 1024G, as 64K or 4MB"},
        {"-e", &a->max, 1, MAX_SIZE, true, "a size from 1 to 1024G, as 64K or 4MB"},
        {"-f", &a->factor, 2, 1u << 20, false, "a factor from 2 to 1048576"},
        {"-g", &a->gpus, 2, FAB_MAX_HOSTS, false, "a number of GPUs, 2 or more"},
        {"-y", &a->inner, 1, FAB_MAX_HOSTS, false, "a number of GPUs, 1 or more"},
        {"-k", &a->sparse, 1, 1u << 20, false, "a number of shards, 1 or more"},
        {"--bom", &a->bom, 1, BOM_MAX_GPUS, false, "a number of GPUs, 1 to 100000000"},
    };

    for (unsigned i = 0; i < LEN(numbers); i++) {
        if (strcmp(numbers[i].name, name))
            continue;
        if ((numbers[i].size ? read_size : read_int)(value, numbers[i].v) ||
            *numbers[i].v < numbers[i].lo || *numbers[i].v > numbers[i].hi)
            return bad(name, value, numbers[i].expected);
        return 0;
    }
    if (!strcmp(name, "--node"))
        return read_node(value, a);
    if (!strcmp(name, "--workload"))
        a->workload = value;
    else if (!strcmp(name, "--json") || !strcmp(name, "-J"))
        a->json = value;
    else
        return bad("option", name, "-b, -e, -f, -g, -y, -k, --workload, --bom, --node or -J");
    return 0;
}

static int read_word(const char *word, struct asked *a)
{
    if (!a->conf) {
        a->conf = word;
        return 0;
    }
    for (unsigned i = 0; model_collective(i) && !a->collective; i++)
        if (!strcmp(model_collective(i), word)) {
            a->collective = word;
            return 0;
        }
    return bad("argument", word, "one of all_reduce, all_gather, reduce_scatter, alltoall");
}

static int read_arguments(int argc, char **argv, struct asked *a)
{
    for (int i = 1; i < argc; i++) {
        int rc;

        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
            a->help = true;
            return 0;
        }
        if (argv[i][0] != '-')
            rc = read_word(argv[i], a);
        else if (i + 1 == argc)
            rc = bad("option", argv[i], "a known one, and its value after it");
        else {
            rc = read_option(argv[i], argv[i + 1], a);
            i++;
        }
        if (rc)
            return rc;
    }
    if (!a->max)
        a->max = a->min ? a->min : 256u << 20;
    if (!a->min)
        a->min = a->max < 256u << 20 ? a->max : 256u << 20;
    if (a->min > a->max)
        return bad("-e", "less than -b", "at least that");
    if (!a->conf && !a->bom)
        return bad("arguments", "no CONF", "trib model CONF, or trib model --bom GPUS");
    return 0;
}

/* The members of the collectives asked for; 0 or -EINVAL. */
static int members(const struct asked *a, const struct fabric *f, const struct cost_levels *l,
                   struct model_ask *ask)
{
    uint64_t gpus = a->gpus ? a->gpus : f->n_hosts;
    char text[32];
    int uneven;

    snprintf(text, sizeof(text), "%" PRIu64, gpus);
    if (gpus > f->n_hosts)
        return bad("-g", text, "at most the GPUs or hosts of the fabric");
    if (gpus % a->inner || a->inner * 2 > gpus) {
        snprintf(text, sizeof(text), "%" PRIu64 " of %" PRIu64 " GPUs", a->inner, gpus);
        return bad("-y", text, "a whole part of them, a half at most");
    }
    *ask = (struct model_ask){{a->inner, gpus / a->inner}, (unsigned)a->sparse};
    uneven = model_uneven(l, ask->axis);
    if (uneven >= 0) {
        fprintf(stderr,
                "trib model: found %" PRIu64 " GPUs in shards of %" PRIu64
                ", expected numbers that fill the groups of %u of level %s, or are a part of one; "
                "trib sim takes any\n",
                gpus, a->inner, l->lv[uneven].below, fab_role_name(l->lv[uneven].role));
        return -EINVAL;
    }
    return 0;
}

static void print_collectives(const struct asked *a, const struct cost_levels *l,
                              const struct model_ask *ask, json_t *json)
{
    struct model_row *rows = calloc(MAX_TABLE + MODEL_MAX_ROWS, sizeof(*rows));
    unsigned n = 0;

    if (!rows)
        return;
    for (unsigned i = 0; model_collective(i); i++) {
        if (a->collective && strcmp(a->collective, model_collective(i)))
            continue;
        /* MAX_SIZE times a factor fits. */
        for (uint64_t size = a->min; size <= a->max && n < MAX_TABLE; size *= a->factor)
            n += model_rows(l, model_collective(i), ask, size, rows + n);
    }
    model_print_rows(l, rows, n, stdout, json);
    model_print_bytes(l, ask->axis, a->max, stdout, json);
    free(rows);
}

static int model_workload(const struct asked *a, const struct fabric *f,
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
                "trib model: found %u GPUs in %s, expected the %" PRIu64 " of workload %s\n",
                f->n_hosts, f->path, workload_gpus(&w), w.name);
        return 1;
    }
    model_print_workload(&w, l, stdout, json);
    return 0;
}

static int model_fabric(const struct asked *a, json_t *json)
{
    static struct fab_errors errs;
    struct fabric *f = fabric_load(a->conf, &errs);
    struct cost_levels l;
    struct model_ask ask;
    int rc = 0;

    if (!f) {
        fab_errors_print(&errs, stderr);
        return 1;
    }
    cost_levels(f, &l);
    if (!a->workload && members(a, f, &l, &ask))
        rc = 2;
    if (!rc) {
        printf("Fabric %s (%s): %u hosts\n", f->name, f->path, f->n_hosts);
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

int main(int argc, char **argv)
{
    struct asked a = {.node = device_find("h100"), .factor = 4, .inner = 1};
    json_t *json = json_object();
    int rc = 0;

    if (!json || read_arguments(argc, argv, &a)) {
        fprintf(stderr, "trib model -h lists all options\n");
        json_decref(json);
        return 2;
    }
    if (a.help) {
        fputs(usage, stdout);
        json_decref(json);
        return 0;
    }
    if (a.bom) {
        struct bom b = bom_of(a.bom, a.node);

        model_print_bom(&b, a.node, stdout, json);
    }
    if (a.conf)
        rc = model_fabric(&a, json);
    if (!rc && a.json) {
        int wrote = atomic_output_json(a.json, json, JSON_INDENT(2));

        if (wrote)
            fprintf(stderr, "trib model: cannot write %s: %s\n", a.json, strerror(-wrote));
        rc = wrote ? 1 : 0;
    }
    json_decref(json);
    return atomic_output_end("trib model") && !rc ? 1 : rc;
}
