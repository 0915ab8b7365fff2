/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Templates: whole topologies in a few lines. Hosts come first (those of leaf0, then those of
 * leaf1, ...), then leaves, then spines. A leaf's ports: its hosts, then spine0's cables, spine1's,
 * ... A spine's: leaf0's cables, leaf1's, ...
 */
#include "fabric/build.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct leaf_spine {
    uint32_t leaves, spines, hosts_per_leaf;
};

static int add_numbered(struct build *b, const char *stem, unsigned i, enum fab_kind kind,
                        enum fab_role role, int line)
{
    char name[FAB_NAME];

    snprintf(name, sizeof(name), "%s%u", stem, i);
    return build_add_node(b, name, kind, role, line);
}

int template_row(struct build *b, const char *stem, unsigned n, enum fab_kind kind,
                 enum fab_role role, int line)
{
    int first = -1, rc;

    for (unsigned i = 0; i < n; i++) {
        rc = add_numbered(b, stem, i, kind, role, line);
        if (rc < 0)
            return rc;
        if (!i)
            first = rc;
    }
    return first;
}

bool template_missing(struct build *b, int line, const char *key, uint32_t value, bool quiet)
{
    if (!value && !quiet)
        build_error(b, line, "found no %s, expected %s = a number of 1 or more", key, key);
    return !value;
}

void template_give_up(struct build *b)
{
    b->nodes_unknown = b->graph_broken = true;
}

void conf_leaf_spine(struct build *b, config_setting_t *s)
{
    static const struct key keys[] = {
        {"leaves", KEY_UINT, offsetof(struct leaf_spine, leaves), 1, FAB_MAX_PORTS},
        {"spines", KEY_UINT, offsetof(struct leaf_spine, spines), 1, FAB_MAX_PORTS},
        {"hosts_per_leaf", KEY_UINT, offsetof(struct leaf_spine, hosts_per_leaf), 1, FAB_MAX_HOSTS},
        {"host_link", KEY_OWN, 0, 0, 0},
        {"spine_link", KEY_OWN, 0, 0, 0},
    };
    struct leaf_spine k = {0};
    struct link_props host, spine;
    int line = (int)config_setting_source_line(s), h, l, p;
    unsigned before = b->errs->total;
    bool bad = false, quiet;

    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { leaves; spines; hosts_per_leaf; host_link; spine_link; }");
        template_give_up(b);
        return;
    }
    keys_read(b, s, keys, LEN(keys), &k);
    quiet = b->errs->total > before;
    bad |= template_missing(b, line, "leaves", k.leaves, quiet);
    bad |= template_missing(b, line, "spines", k.spines, quiet);
    bad |= template_missing(b, line, "hosts_per_leaf", k.hosts_per_leaf, quiet);
    conf_link_group(b, s, "host_link", &host);
    conf_link_group(b, s, "spine_link", &spine);
    if (bad) {
        template_give_up(b);
        return;
    }
    h = template_row(b, "h", k.leaves * k.hosts_per_leaf, FAB_HOST, FAB_ROLE_HOST, line);
    l = h < 0 ? h : template_row(b, "leaf", k.leaves, FAB_SWITCH, FAB_ROLE_LEAF, line);
    p = l < 0 ? l : template_row(b, "spine", k.spines, FAB_SWITCH, FAB_ROLE_SPINE, line);
    if (p < 0) {
        template_give_up(b);
        return;
    }
    for (unsigned i = 0; i < k.leaves * k.hosts_per_leaf; i++)
        if (build_add_link(b, (uint16_t)(h + (int)i), (uint16_t)(l + (int)(i / k.hosts_per_leaf)),
                           &host, line))
            return;
    for (unsigned i = 0; i < k.leaves; i++)
        for (unsigned j = 0; j < k.spines; j++)
            if (build_add_link(b, (uint16_t)(l + (int)i), (uint16_t)(p + (int)j), &spine, line))
                return;
}

/* Adds the hosts of a template that has only hosts and links. Returns the first, or -1. */
static int only_hosts(struct build *b, config_setting_t *s, uint32_t least, uint32_t most,
                      uint32_t *n, struct link_props *link)
{
    const struct key keys[] = {
        {"hosts", KEY_UINT, 0, least, most},
        {"host_link", KEY_OWN, 0, 0, 0},
    };
    int line = (int)config_setting_source_line(s);
    unsigned before = b->errs->total;

    *n = 0;
    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { hosts; host_link; }");
        return -1;
    }
    keys_read(b, s, keys, LEN(keys), n);
    if (template_missing(b, line, "hosts", *n, b->errs->total > before))
        return -1;
    conf_link_group(b, s, "host_link", link);
    return template_row(b, "h", *n, FAB_HOST, FAB_ROLE_HOST, line);
}

void conf_single_switch(struct build *b, config_setting_t *s)
{
    struct link_props link;
    uint32_t n;
    int line = (int)config_setting_source_line(s);
    int h = only_hosts(b, s, 1, FAB_MAX_HOSTS, &n, &link);
    int sw = h < 0 ? h : template_row(b, "switch", 1, FAB_SWITCH, FAB_ROLE_SWITCH, line);

    if (sw < 0) {
        template_give_up(b);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        if (build_add_link(b, (uint16_t)(h + (int)i), (uint16_t)sw, &link, line))
            return;
}

/* Links every host with every other, in order: its port to host j is j, or j - 1 above its own
 * index. */
void conf_full_mesh(struct build *b, config_setting_t *s)
{
    struct link_props link;
    uint32_t n;
    int line = (int)config_setting_source_line(s);
    int h = only_hosts(b, s, 2, FAB_MAX_HOST_PORTS + 1, &n, &link);

    if (h < 0) {
        template_give_up(b);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = i + 1; j < n; j++)
            if (build_add_link(b, (uint16_t)(h + (int)i), (uint16_t)(h + (int)j), &link, line))
                return;
}
