/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int choose_named(const struct fabric *f, const char *list, bool *mine)
{
    char *copy = strdup(list), *save = NULL;
    int rc = copy ? 0 : -ENOMEM;

    for (char *t = copy ? strtok_r(copy, ",", &save) : NULL; t && !rc;
         t = strtok_r(NULL, ",", &save)) {
        const struct fab_node *nd = fabric_node(f, t);

        if (nd && nd->outside) {
            fprintf(stderr,
                    "trib-switch: --nodes: found \"%s\", which is outside, expected a node "
                    "that is emulated\n",
                    t);
            rc = -EINVAL;
            continue;
        }
        if (nd) {
            mine[fabric_node_index(f, nd)] = true;
            continue;
        }
        fprintf(stderr, "trib-switch: --nodes: found \"%s\", expected a node of %s:", t, f->path);
        for (uint16_t i = 0; i < f->n_nodes && i < 40; i++)
            fprintf(stderr, " %s", f->nodes[i].name);
        fputc('\n', stderr);
        rc = -ENOENT;
    }
    free(copy);
    return rc;
}

bool switch_is_trunk(const struct fabric *f, const char *proc)
{
    return f->n_machines && proc && !strcmp(proc, FAB_TRUNK);
}

int switch_nodes(const struct fabric *f, const char *list, const char *named, bool *mine,
                 unsigned *proc, char *name, size_t size)
{
    uint16_t first = 0;

    *proc = 0;
    if (switch_is_trunk(f, named)) {
        snprintf(name, size, FAB_TRUNK);
        return 0;
    }
    if (named) {
        while (*proc < f->n_procs && strcmp(f->procs[*proc].name, named))
            ++*proc;
        if (*proc == f->n_procs) {
            fprintf(stderr, "trib-switch: --proc: found \"%s\", expected a process of %s:", named,
                    f->path);
            for (unsigned i = 0; i < f->n_procs; i++)
                fprintf(stderr, " %s", f->procs[i].name);
            fputc('\n', stderr);
            return -ENOENT;
        }
        for (uint16_t i = 0; i < f->procs[*proc].n_nodes; i++)
            mine[f->procs[*proc].nodes[i]] = true;
        snprintf(name, size, "%s", named);
        return 0;
    }
    if (!list) {
        for (uint16_t i = 0; i < f->n_nodes; i++)
            mine[i] = !f->nodes[i].outside;
        snprintf(name, size, "%s", f->n_procs == 1 ? f->procs[0].name : "all");
        return 0;
    }
    if (choose_named(f, list, mine))
        return -ENOENT;
    while (first < f->n_nodes && !mine[first])
        first++;
    if (first == f->n_nodes) {
        fprintf(stderr, "trib-switch: --nodes: found no name, expected a list\n");
        return -EINVAL;
    }
    /* Peers ring the bell of the process that the conf assigns to a node, so this process uses the
     * bell of its first node; nodes of one process share it. */
    *proc = f->nodes[first].proc;
    snprintf(name, size, "%s", f->nodes[first].name);
    return 0;
}
