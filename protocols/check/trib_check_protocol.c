/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-check-protocol: runs an aggregation protocol in a small fabric against everything that the
 * interface allows, and reports which properties it has.
 */
#include "system/atomic_output.h"
#include "base/options.h"
#include "protocols/check/property.h"
#include "protocols/host/load.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_SEEDS 60
#define QUICK_SEEDS 12

struct check_asked {
    const char *name, *set[TRIB_KEYS]; /* set: "key=value" */
    uint64_t seeds, seed;
    unsigned property; /* a bit for each */
    bool quick, trace;
};

static const char *list_properties(unsigned i)
{
    return property_name(i);
}

#define AT(f)   .offset = offsetof(struct check_asked, f)
#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])

static const struct option_row runs[] = {
    {.name = "seeds",
     .arg = "N",
     AT(seeds),
     .type = OPTION_U64,
     .min = 1,
     .max = 1000000,
     .shown = "60",
     .help = "cases of each property"},
    {.name = "quick", AT(quick), .type = OPTION_FLAG, .help = "12 cases of each"},
    {.name = "property",
     .arg = "NAMES",
     AT(property),
     .type = OPTION_SET,
     .list = list_properties,
     .initial = "all",
     .help = "only these properties"},
    {.name = "seed",
     .arg = "SEED",
     AT(seed),
     .type = OPTION_U64,
     .min = 1,
     .max = UINT32_MAX,
     .help = "only this case of each"},
    {.name = "trace",
     AT(trace),
     .type = OPTION_FLAG,
     .help = "print every packet that a switch or a rank handles"},
};
static const struct option_row words[] = {
    {.arg = "PROTOCOL",
     AT(name),
     .type = OPTION_TEXT,
     .how = OPTION_REQUIRED,
     .help = "a shared object, by a path with a slash or by .so, or the name of a built-in"},
    {.arg = "KEY=VALUE...",
     AT(set[0]),
     .type = OPTION_TEXT,
     .help = "keys of the protocol, as in the conf's group reduce"},
#define MORE(i)                                                                                    \
    {                                                                                              \
        .arg = "KEY=VALUE", AT(set[i]), .type = OPTION_TEXT, .how = OPTION_HIDDEN                  \
    }
    MORE(1),
    MORE(2),
    MORE(3),
    MORE(4),
    MORE(5),
    MORE(6),
    MORE(7),
};
static const struct option_group groups[] = {
    {"Cases", ROWS(runs)},
    {NULL, NULL, 0},
};
static const struct option_note exits[] = {
    {"0", "the protocol has all properties"},
    {"1", "it lacks one, or cannot be loaded; the reason is printed"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-check-protocol",
    .summary = "check an aggregation protocol",
    .synopsis = "[OPTION...] FILE.so|NAME [KEY=VALUE...]",
    .text = "Runs both halves of an aggregation protocol in a network of its own, in virtual time: "
            "ranks, one or two levels of switches, several jobs; packets are lost, duplicated, "
            "overtaken and forged, ranks die, all drawn from seeds. Prints a line a property; a "
            "failure names the property, the seed, the packet, and how to run that seed again.\n\n"
            "exactness: results are exact, or within the protocol's stated bound. loss, "
            "duplication, reordering: they stay so. jobs: several at once do not disturb each "
            "other. leaks: slots and memory are given back, also when a rank dies. determinism: "
            "two runs send the same packets. work: within the declared limits, and declared where "
            "slots change. memory: a job that gets none is refused, and the limit is kept. "
            "hostile: forged packets neither crash it nor lead it out of its arrays. versions: "
            "another version of the interface is refused. keys: usual values are in their ranges, "
            "whose ends work or are refused.",
    .words = words,
    .n_words = 1 + TRIB_KEYS,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-sim(1), trib-perf(1)",
};

/* ---- the protocol and its keys ---- */

static bool is_path(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 3 && !strcmp(name + n - 3, ".so"));
}

/* Loads a shared object. A name without "/" gets "./", as dlopen() would look for a library. */
static int check_protocol_load(const char *name, char *err)
{
    char path[4096];

    if (!strchr(name, '/') && (size_t)snprintf(path, sizeof(path), "./%s", name) < sizeof(path))
        name = path;
    return proto_load(name, err);
}

static const struct trib_protocol *check_protocol_find(const char *name, int *code)
{
    char err[PROTO_TEXT] = "";
    int seat;

    if (is_path(name)) {
        seat = check_protocol_load(name, err);
        if (seat >= 0)
            return proto_at((unsigned)seat);
        fprintf(stderr, "trib-check-protocol: %s\n", err);
        *code = 1;
        return NULL;
    }
    seat = proto_seat(name);
    if (seat < 0) {
        char text[OPTIONS_ERR];
        int n = snprintf(text, sizeof(text),
                         "found \"%s\", expected a shared object (%s.so) or one of", name, name);

        for (unsigned i = 0; i < PROTO_SEATS; i++)
            if (proto_at(i) && n > 0 && (size_t)n < sizeof(text))
                n += snprintf(text + n, sizeof(text) - (size_t)n, " %s", proto_at(i)->name);
        *code = options_wrong(&program, text);
        return NULL;
    }
    return proto_at((unsigned)seat);
}

/* "slots=64". */
static int set_key(const struct trib_protocol *p, const char *text, int64_t *key)
{
    const char *value = strchr(text, '=');
    char name[64], err[OPTIONS_ERR], *end;
    long long v;
    int i;

    if (!value || value == text || (size_t)(value - text) >= sizeof(name)) {
        snprintf(err, sizeof(err), "found \"%s\", expected KEY=VALUE", text);
        return options_wrong(&program, err);
    }
    snprintf(name, sizeof(name), "%.*s", (int)(value - text), text);
    i = proto_key(p, name);
    if (i < 0) {
        int n = snprintf(err, sizeof(err), "found key \"%s\", expected one of protocol %s:", name,
                         p->name);

        for (unsigned k = 0; k < proto_keys(p); k++)
            n += snprintf(err + n, sizeof(err) - (size_t)n, " %.30s", p->keys[k].name);
        return options_wrong(&program, err);
    }
    errno = 0;
    v = strtoll(value + 1, &end, 0);
    if (errno || end == value + 1 || *end || v < p->keys[i].least || v > p->keys[i].most) {
        snprintf(err, sizeof(err),
                 "%s: found \"%s\", expected a number from %" PRId64 " to %" PRId64, name,
                 value + 1, p->keys[i].least, p->keys[i].most);
        return options_wrong(&program, err);
    }
    key[i] = v;
    return 0;
}

/* ---- the table ---- */

/* Prints the command that runs a seed again. */
static void print_again(const struct check_asked *a, const char *property, uint64_t seed)
{
    printf("%-14s again: trib check-protocol %s%s", "",
           strchr(a->name, '/') || !is_path(a->name) ? "" : "./", a->name);
    for (unsigned i = 0; i < TRIB_KEYS && a->set[i]; i++)
        printf(" %s", a->set[i]);
    printf(" --property %s --seed %" PRIu64 " --trace\n", property, seed);
}

static void print_found(const char *name, const struct property_found *f)
{
    if (!f->failed) {
        printf("%-14s ok      ", name);
        if (f->packets)
            printf("%" PRIu64 " cases, %" PRIu64 " packets%s", f->seeds, f->packets,
                   f->text[0] ? "; " : "");
        printf("%s\n", f->text);
        return;
    }
    printf("%-14s FAILED  seed %" PRIu64 ", ", name, f->seed);
    if (f->packet)
        printf("packet %" PRIu64 ": ", f->packet);
    printf("%s\n", f->text);
}

static int check_all(const struct check_asked *a, const struct property_plan *plan)
{
    unsigned failed = 0, all = 0;

    for (unsigned p = 0; p < PROPERTIES; p++) {
        struct property_found found = {.seed = 0};
        int rc;

        if (!(a->property >> p & 1))
            continue;
        rc = property_run(plan, p, &found);
        if (rc) {
            fprintf(stderr, "trib-check-protocol: %s\n", strerror(-rc));
            return 1;
        }
        all++;
        print_found(property_name(p), &found);
        if (found.failed) {
            failed++;
            print_again(a, property_name(p), found.seed);
        }
    }
    printf("%s: %u of %u properties\n", plan->protocol->name, all - failed, all);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct check_asked a = {.name = NULL};
    struct property_plan plan = {.first = 1};
    int64_t key[TRIB_KEYS];
    struct option_result r;
    int rc = 0;

    signal(SIGCHLD, SIG_DFL); /* if the caller left it ignored, waitpid() would report no child */
    if (!options_begin(&program, (void *[]){&a}, argc, argv, &r, &rc))
        return rc;
    plan.protocol = check_protocol_find(a.name, &rc);
    if (!plan.protocol)
        return rc;
    proto_usual(plan.protocol, key);
    for (unsigned i = 0; i < TRIB_KEYS && a.set[i]; i++)
        if (set_key(plan.protocol, a.set[i], key))
            return 2;
    plan.key = key;
    plan.last = a.seeds ? a.seeds : a.quick ? QUICK_SEEDS : USUAL_SEEDS;
    if (a.seed)
        plan.first = plan.last = a.seed;
    plan.trace = a.trace ? stdout : NULL;
    rc = check_all(&a, &plan);
    return atomic_output_end("trib-check-protocol") && !rc ? 1 : rc;
}
