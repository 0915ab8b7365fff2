/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-plan CONF: prints the fabric that a conf file describes; starts nothing.
 */
#include "system/atomic_output.h"
#include "system/input.h"
#include "base/nearest.h"
#include "base/options.h"
#include "base/printable.h"
#include "base/secret.h"
#include "fabric/report/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan_opts {
    const char *conf, *nearest;
    unsigned names;
    bool all, name, procs, machines, svg, dot, no_trees, no_secrets;
};

#define AT(f)   .offset = offsetof(struct plan_opts, f)
#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])

enum { NAMES_NONE, NAMES_HOSTS, NAMES_NODES, NAMES_LINKS };

static const char *list_names(unsigned i)
{
    static const char *const names[] = {"", "hosts", "nodes", "links"};

    return i < 4 ? names[i] : NULL;
}

static const struct option_row output[] = {
    {.c = 'v',
     .name = "verbose",
     AT(all),
     .type = OPTION_FLAG,
     .help = "list everything; by default a fabric of more than 64 addresses is summed up by kind"},
    {.name = "svg",
     AT(svg),
     .type = OPTION_FLAG,
     .help = "print a picture instead: nodes by tier, links by rate, aggregation trees in colour; "
             "alike "
             "nodes share a box where it would be wider than 2400 pixels"},
    {.name = "no-trees",
     AT(no_trees),
     .type = OPTION_FLAG,
     .help = "with --svg: without aggregation trees"},
    {.name = "dot", AT(dot), .type = OPTION_FLAG, .help = "print the same as a graph for Graphviz"},
    {.name = "name",
     AT(name),
     .type = OPTION_FLAG,
     .help = "print only the fabric's name, for scripts"},
    {.name = "procs",
     AT(procs),
     .type = OPTION_FLAG,
     .help = "print only the names of its switch processes, for scripts"},
    {.name = "machines",
     AT(machines),
     .type = OPTION_FLAG,
     .help = "print only its machines, for scripts: name, address, names of its processes"},
    {.name = "no-secrets",
     AT(no_secrets),
     .type = OPTION_FLAG,
     .help = "print the conf itself, to be shown to others: without its trunk_key, as in results"},
    {.name = "names",
     .arg = "hosts|nodes|links",
     AT(names),
     .type = OPTION_CHOICE,
     .list = list_names,
     .how = OPTION_HIDDEN,
     .help = "print only the names of these, for completion"},
    {.name = "nearest",
     .arg = "WORD",
     AT(nearest),
     .type = OPTION_TEXT,
     .how = OPTION_HIDDEN,
     .help = "print which of the names on standard input was meant by WORD, for scripts"},
};
static const struct option_row words[] = {
    {.arg = "CONF", AT(conf), .type = OPTION_TEXT, .help = "the fabric's conf file"},
};
static const struct option_group groups[] = {{"Output", ROWS(output)}, {NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"0", "the conf file describes a fabric"},
    {"1", "it has mistakes, which are named on stderr"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-plan",
    .summary = "print the fabric that a conf file describes",
    .synopsis = "[OPTION...] CONF",
    .text = "Prints the nodes, links, addresses and aggregation trees of a fabric, and the "
            "resources that they need. Starts nothing.",
    .words = words,
    .n_words = 1,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-model(1), trib-switch(1)",
};

static void print_machines(const struct fabric *f)
{
    for (unsigned m = 0; m < f->n_machines; m++) {
        uint32_t ip = f->machines[m].ip;

        printf("%s %u.%u.%u.%u " FAB_TRUNK, f->machines[m].name, ip >> 24, ip >> 16 & 255,
               ip >> 8 & 255, ip & 255);
        for (unsigned i = 0; i < f->n_procs; i++)
            if (f->procs[i].machine == m)
                printf(" %s", f->procs[i].name);
        putchar('\n');
    }
}

/* Prints the line of `in` that is nearest to a word, if one is. False: no memory. */
static bool print_nearest(const char *word, FILE *in)
{
    char **name = NULL, *line = NULL;
    size_t n = 0, size = 0;
    const char *near;
    bool ok = true;

    while (ok && getline(&line, &size, in) > 0) {
        char **more = realloc(name, (n + 1) * sizeof(*name));

        name = more ? more : name;
        line[strcspn(line, "\n")] = 0;
        ok = more && (name[n] = strdup(line));
        n += ok;
    }
    near = ok ? nearest_of(word, (const char *const *)name, (unsigned)n) : NULL;
    if (near)
        puts(near);
    for (size_t i = 0; i < n; i++)
        free(name[i]);
    free(name);
    free(line);
    return ok;
}

/* Whether "a-b" is this link and no other. Names with a '-' may be read in several ways. */
static bool brief_is_one(const struct fabric *f, unsigned i, const char *brief)
{
    const struct fab_link *l = &f->links[i];
    const struct fab_node *a = &f->nodes[l->a];
    unsigned n = 0;

    if (strchr(a->name, '-') || strchr(f->nodes[l->b].name, '-'))
        return fabric_link_by_name(f, brief) == (int)i;
    for (unsigned p = 0; p < a->n_ports; p++)
        n += a->ports[p].link != FAB_NONE && a->ports[p].peer_node == l->b;
    return n == 1;
}

/* A link by its nodes where that is one, else with its ports. */
static void print_names(const struct fabric *f, unsigned what)
{
    for (unsigned i = 0; what == NAMES_HOSTS && i < f->n_hosts; i++)
        puts(f->nodes[f->hosts[i]].name);
    for (unsigned i = 0; what == NAMES_NODES && i < f->n_nodes; i++)
        puts(f->nodes[i].name);
    for (unsigned i = 0; what == NAMES_LINKS && i < f->n_links; i++) {
        char brief[2 * FAB_NAME + 2];

        snprintf(brief, sizeof(brief), "%s-%s", f->nodes[f->links[i].a].name,
                 f->nodes[f->links[i].b].name);
        puts(brief_is_one(f, i, brief) ? brief : f->links[i].name);
    }
}

/* Before a fabric is started: whether the programs that run it take it. */
static bool runs(const struct fabric *f)
{
    const struct {
        const char *what;
        unsigned found, most, planned;
    } limits[] = {{"hosts", f->n_hosts, FAB_RUN_HOSTS, FAB_PLAN_HOSTS},
                  {"nodes", f->n_nodes, FAB_RUN_NODES, FAB_PLAN_NODES},
                  {"links", f->n_links, FAB_RUN_LINKS, FAB_PLAN_LINKS},
                  {"addresses", f->n_dests, FAB_RUN_DESTS, FAB_PLAN_DESTS}};

    for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (limits[i].found <= limits[i].most)
            continue;
        fprintf(stderr,
                "%s: found %u %s, expected at most %u in a fabric that runs; trib plan and trib "
                "model take up to %u\n",
                f->path, limits[i].found, limits[i].what, limits[i].most, limits[i].planned);
        return false;
    }
    return true;
}

static int no_memory(void)
{
    fprintf(stderr, "trib-plan: no memory\n");
    return 1;
}

/* False: no memory. */
static bool print(const struct plan_opts *o, const struct fabric *f)
{
    if (o->svg)
        return !plan_svg(f, !o->no_trees, stdout);
    if (o->dot)
        return !plan_dot(f, stdout);
    if (o->name)
        puts(f->name);
    for (unsigned i = 0; o->procs && i < f->n_procs; i++)
        puts(f->procs[i].name);
    if (o->machines)
        print_machines(f);
    print_names(f, o->names);
    if (!o->names && !o->name && !o->procs && !o->machines)
        fabric_plan(f, o->all, stdout);
    return true;
}

/* Of any file that libconfig reads: fault plans and workloads are published with confs. */
static int print_shown(const char *path)
{
    char why[INPUT_WHY], name[512], *text, *shown;
    size_t n;

    snprintf(name, sizeof(name), "%s", path);
    printable_make(name, sizeof(name));
    text = input_text(path, INPUT_MOST, &n, why);
    if (!text) {
        fprintf(stderr, "trib-plan: %s: found no readable file (%s), expected a conf\n", name, why);
        return 1;
    }
    shown = strlen(text) == n ? secret_hide(text) : NULL;
    if (shown)
        fputs(shown, stdout);
    else
        fprintf(stderr,
                "trib-plan: %s: found no conf that libconfig reads, expected one: nobody knows "
                "what is secret in another file\n",
                name);
    free(shown);
    free(text);
    return shown && !atomic_output_end("trib-plan") ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct fab_errors errs;
    struct plan_opts o = {.conf = NULL};
    struct option_result r;
    struct fabric *f;
    bool printed;
    int code;

    if (!options_begin(&program, (void *[]){&o}, argc, argv, &r, &code))
        return code;
    if (o.svg + o.dot + o.name + o.procs + o.machines + o.no_secrets > 1)
        return options_wrong(&program, "found several of --svg, --dot, --name, --procs, "
                                       "--machines and --no-secrets, expected one of them");
    if (o.no_trees && !o.svg)
        return options_wrong(&program, "found --no-trees, expected --svg with it");
    if (o.nearest)
        return print_nearest(o.nearest, stdin) ? 0 : no_memory();
    if (!o.conf)
        return options_wrong(&program, "found no CONF, expected the fabric's conf file");
    if (o.no_secrets)
        return print_shown(o.conf);
    f = fabric_load(o.conf, &errs);
    if (!f) {
        fab_errors_print(&errs, stderr);
        return 1;
    }
    if ((o.procs || o.machines) && !runs(f))
        return 1;
    printed = print(&o, f);
    fabric_free(f);
    if (!printed)
        return no_memory();
    return atomic_output_end("trib-plan") ? 1 : 0;
}
