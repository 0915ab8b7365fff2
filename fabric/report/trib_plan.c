/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-plan CONF: what a conf file describes, without starting anything.
 * Exit code 0: fine; 1: mistakes in the file, named on stderr; 2: wrong usage.
 */
#include "base/atomic_output.h"
#include "fabric/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: trib plan [-v] CONF\n"
    "Prints the nodes, links, addresses and aggregation trees of a fabric, and what they need.\n"
    "Of more than 64 addresses it sums up what is alike; -v lists everything.\n"
    "For scripts: --name CONF prints the fabric's name, --procs CONF its switch processes.\n";

static void print_part(const struct fabric *f, const char *part)
{
    if (!strcmp(part, "--name"))
        puts(f->name);
    for (unsigned i = 0; i < f->n_procs && !strcmp(part, "--procs"); i++)
        puts(f->procs[i].name);
}

int main(int argc, char **argv)
{
    static struct fab_errors errs;
    const char *part = NULL;
    struct fabric *f;
    bool all = false;

    if (argc == 3 && (!strcmp(argv[1], "-v") || !strcmp(argv[1], "--verbose"))) {
        all = true;
        argv++, argc--;
    } else if (argc == 3 && (!strcmp(argv[1], "--name") || !strcmp(argv[1], "--procs"))) {
        part = argv[1];
        argv++, argc--;
    }
    if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc != 2 || argv[1][0] == '-') {
        fputs(usage, stderr);
        return 2;
    }
    f = fabric_load(argv[1], &errs);
    if (!f) {
        fab_errors_print(&errs, stderr);
        return 1;
    }
    if (part)
        print_part(f, part);
    else
        fabric_plan(f, all, stdout);
    fabric_free(f);
    return atomic_output_end("trib plan") ? 1 : 0;
}
