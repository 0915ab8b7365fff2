/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guesses which node or link somebody meant whose name the fabric does not have. A link has four names: its
 * ends in either order, with or without their ports.
 */
#include "base/nearest.h"
#include "fabric/fabric.h"

#include <stdio.h>
#include <string.h>

struct candidates {
    const struct fabric *f;
    char *name; /* NEAR_TEXT bytes */
    bool ports;
};

#define NEAR_TEXT sizeof(((struct fab_link *)0)->name)

static const char *host_at(const void *ctx, unsigned i)
{
    const struct fabric *f = ctx;

    return i < f->n_hosts ? f->nodes[f->hosts[i]].name : NULL;
}

static const char *node_at(const void *ctx, unsigned i)
{
    const struct fabric *f = ctx;

    return i < f->n_nodes ? f->nodes[i].name : NULL;
}

static const char *link_at(const void *ctx, unsigned i)
{
    const struct candidates *c = ctx;
    const struct fab_link *l = &c->f->links[i / 2];
    bool turned = i % 2;

    if (i >= 2 * c->f->n_links)
        return NULL;
    if (c->ports)
        snprintf(c->name, NEAR_TEXT, "%s:%u-%s:%u", c->f->nodes[turned ? l->b : l->a].name,
                 (unsigned)(turned ? l->b_port : l->a_port), c->f->nodes[turned ? l->a : l->b].name,
                 (unsigned)(turned ? l->a_port : l->b_port));
    else
        snprintf(c->name, NEAR_TEXT, "%s-%s", c->f->nodes[turned ? l->b : l->a].name,
                 c->f->nodes[turned ? l->a : l->b].name);
    return c->name;
}

const char *fabric_near_node(const struct fabric *f, const char *name, bool host)
{
    return nearest_name(name, host ? host_at : node_at, f);
}

const char *fabric_link_hint(const struct fabric *f, const char *name, char *buf, size_t size)
{
    char text[NEAR_TEXT];
    struct candidates c = {.f = f, .name = text, .ports = strchr(name, ':') != NULL};
    int i = nearest_index(name, link_at, &c);

    if (i < 0 && c.ports) { /* perhaps "h0:leaf0" */
        c.ports = false;
        i = nearest_index(name, link_at, &c);
    }
    if (i < 0)
        return nearest_hint(NULL, buf, size);
    link_at(&c, (unsigned)i);
    if (fabric_link_by_name(f, text) < 0) /* the name fits parallel cables */
        snprintf(text, sizeof(text), "%s", f->links[i / 2].name);
    return nearest_hint(text, buf, size);
}

const char *fabric_host_hint(const struct fabric *f, const char *name, char *buf, size_t size)
{
    const char *near = fabric_near_node(f, name, true);
    unsigned n = f->n_hosts;

    if (near)
        return nearest_hint(near, buf, size);
    if (n > 1)
        snprintf(buf, size, ", which has %u: %s to %s", n, f->nodes[f->hosts[0]].name,
                 f->nodes[f->hosts[n - 1]].name);
    else
        snprintf(buf, size, ", which has %s", n ? f->nodes[f->hosts[0]].name : "none");
    return buf;
}
