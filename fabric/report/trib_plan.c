/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-plan CONF: prints the fabric that a conf file describes; starts nothing.
 */
#include "system/atomic_output.h"
#include "system/input.h"
#include "base/options.h"
#include "base/printable.h"
#include "base/secret.h"
#include "fabric/report/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan_opts {
    const char *conf;
    bool all, name, procs, machines, svg, dot, no_trees, no_secrets;
};

#define AT(f)   .offset = offsetof(struct plan_opts, f)
#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])

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

static int no_memory(void)
{
    fprintf(stderr, "trib-plan: no memory\n");
    return 1;
}

/* Prints as the options say. False: no memory. */
static bool plan_opts_print(const struct plan_opts *o, const struct fabric *f)
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
    if (!o->name && !o->procs && !o->machines)
        fabric_plan(f, o->all, stdout);
    return true;
}

/* Prints any file that libconfig reads: fault plans and workloads are published with confs. */
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
    char why[PLAN_WHY];
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
    if (!o.conf)
        return options_wrong(&program, "found no CONF, expected the fabric's conf file");
    if (o.no_secrets)
        return print_shown(o.conf);
    f = fabric_load(o.conf, &errs);
    if (!f) {
        fab_errors_print(&errs, stderr);
        return 1;
    }
    if ((o.procs || o.machines) && !plan_runs(f, why, sizeof(why))) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    printed = plan_opts_print(&o, f);
    fabric_free(f);
    if (!printed)
        return no_memory();
    return atomic_output_end("trib-plan") ? 1 : 0;
}
