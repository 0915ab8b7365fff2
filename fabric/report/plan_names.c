/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/report/plan.h"

#include <stdio.h>
#include <string.h>

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

const char *plan_link_name(const struct fabric *f, unsigned i, char *buf, size_t size)
{
    snprintf(buf, size, "%s-%s", f->nodes[f->links[i].a].name, f->nodes[f->links[i].b].name);
    return brief_is_one(f, i, buf) ? buf : f->links[i].name;
}

bool plan_runs(const struct fabric *f, char *why, size_t size)
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
        snprintf(why, size,
                 "%s: found %u %s, expected at most %u in a fabric that runs; trib plan and trib "
                 "model take up to %u",
                 f->path, limits[i].found, limits[i].what, limits[i].most, limits[i].planned);
        return false;
    }
    return true;
}
