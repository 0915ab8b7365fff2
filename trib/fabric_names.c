/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/fabric_names.h"

#include "fabric/report/plan.h"
#include "trib/run/text.h"

#include <string.h>

struct words fabric_names(const struct fabric *f, const char *what)
{
    char name[PLAN_LINK_NAME];
    struct words names = {0};

    for (unsigned i = 0; !strcmp(what, "hosts") && i < f->n_hosts; i++)
        words_append(&names, text_of("%s", f->nodes[f->hosts[i]].name));
    for (unsigned i = 0; !strcmp(what, "nodes") && i < f->n_nodes; i++)
        words_append(&names, text_of("%s", f->nodes[i].name));
    for (unsigned i = 0; !strcmp(what, "links") && i < f->n_links; i++)
        words_append(&names, text_of("%s", plan_link_name(f, i, name, sizeof(name))));
    return names;
}
