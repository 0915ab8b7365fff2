/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Templates: whole topologies in a few lines. Hosts come first (those of leaf0, then those of
 * leaf1, ...), then leaves, then spines, then cores. A leaf's ports: its hosts, then its first spine's
 * cables, the next one's, ... A spine's: its first leaf's cables, the next one's, ..., then cores'.
 */
#include "fabric/build.h"

#include <errno.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct leaf_spine {
    uint32_t leaves, spines, hosts_per_leaf, pods, cores, groups;
};

static int add_numbered(struct build *b, const char *stem, unsigned i, enum fab_kind kind,
                        enum fab_role role, int line)
{
    char name[FAB_NAME];

    snprintf(name, sizeof(name), "%s%u", stem, i);
    return build_add_node(b, name, kind, role, line);
}

int template_row(struct build *b, const char *stem, uint64_t n, enum fab_kind kind,
                 enum fab_role role, int line)
{
    int first = -1, rc;

    for (uint64_t i = 0; i < n; i++) {
        rc = add_numbered(b, stem, (unsigned)i, kind, role, line);
        if (rc == -ENOSPC)
            build_over(b, kind == FAB_HOST ? &b->over_hosts : &b->over_nodes, n - i - 1, line);
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

void template_divides(struct build *b, int line, const char *what, uint32_t n, const char *part,
                      uint32_t by)
{
    if (by && n % by)
        build_error(b, line, "%s: found %u, expected one that divides the %u %s", part, by, n,
                    what);
}

void template_give_up(struct build *b)
{
    b->nodes_unknown = b->graph_broken = true;
}

/* Checks a third tier, also for `rails`: its parts must have equal size. */
static void check_tiers(struct build *b, int line, const struct leaf_spine *k)
{
    template_divides(b, line, "leaves", k->leaves, "pods", k->pods);
    template_divides(b, line, "spines", k->spines, "pods", k->pods);
    template_divides(b, line, "cores", k->cores, "core_groups", k->groups);
    template_divides(b, line, "spines of a pod", k->spines / k->pods, "core_groups", k->groups);
    if (!k->cores && k->pods > 1)
        build_error(b, line, "pods: found %u without cores, expected cores that join them",
                    k->pods);
}

/* Joins every leaf to every spine of its pod, and every spine to every core of its group. p: the first
 * spine, l: the first leaf, c: the first core. */
static int join_tiers(struct build *b, const struct leaf_spine *k, int l, int p, int c,
                      const struct link_props *spine, const struct link_props *core, int line)
{
    unsigned leaves = k->leaves / k->pods, spines = k->spines / k->pods;
    unsigned cores = k->cores / k->groups;
    int rc = 0;

    for (unsigned i = 0; i < k->leaves; i++)
        for (unsigned j = i / leaves * spines; j < (i / leaves + 1) * spines && !rc; j++)
            rc = build_add_link(b, (fab_id)(l + (int)i), (fab_id)(p + (int)j), spine, line);
    for (unsigned j = 0; j < k->spines && cores; j++) {
        unsigned group = j % spines / (spines / k->groups);

        for (unsigned i = group * cores; i < (group + 1) * cores && !rc; i++)
            rc = build_add_link(b, (fab_id)(p + (int)j), (fab_id)(c + (int)i), core, line);
    }
    return rc;
}

static const struct key leaf_spine_keys[] = {
    /* Of all pods. Needed. */
    RANGE_KEY("leaves", KEY_UINT, offsetof(struct leaf_spine, leaves), 1, FAB_MAX_NODES, NULL),
    /* Of all pods; `spine_link` joins every leaf with every spine of its pod. Needed. */
    RANGE_KEY("spines", KEY_UINT, offsetof(struct leaf_spine, spines), 1, FAB_MAX_NODES, NULL),
    /* Hosts at each leaf. Needed. */
    RANGE_KEY("hosts_per_leaf", KEY_UINT, offsetof(struct leaf_spine, hosts_per_leaf), 1,
              FAB_MAX_HOSTS, NULL),
    /* Pods into which leaves and spines are divided, in order; more than one need `cores`. */
    RANGE_KEY("pods", KEY_UINT, offsetof(struct leaf_spine, pods), 1, FAB_MAX_NODES, "1"),
    /* Of the whole fabric; `core_link` joins every spine with every core of its group.
     * Default: 0. */
    RANGE_KEY("cores", KEY_UINT, offsetof(struct leaf_spine, cores), 1, FAB_MAX_NODES, NULL),
    /* Groups into which cores, and the spines of each pod, are divided. */
    RANGE_KEY("core_groups", KEY_UINT, offsetof(struct leaf_spine, groups), 1, FAB_MAX_NODES, "1"),
    /* Group of keys of a link, between a host and its leaf. Needed, or in `link_defaults`. */
    OWN_KEY("host_link"),
    /* Group of keys of a link, between a leaf and a spine. Needed, or in `link_defaults`. */
    OWN_KEY("spine_link"),
    /* Group of keys of a link, with `cores`. Needed, or in `link_defaults`. */
    OWN_KEY("core_link"),
};

void conf_leaf_spine(struct build *b, config_setting_t *s)
{
    struct leaf_spine k = {0};
    struct link_props host, spine, core = {0};
    int line = (int)config_setting_source_line(s), h, l, p, c;
    unsigned before = b->errs->total;
    bool bad = false, quiet;

    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { leaves; spines; hosts_per_leaf; host_link; spine_link; }");
        template_give_up(b);
        return;
    }
    keys_initial(leaf_spine_keys, LEN(leaf_spine_keys), &k);
    keys_read(b, s, leaf_spine_keys, LEN(leaf_spine_keys), &k);
    quiet = b->errs->total > before;
    bad |= template_missing(b, line, "leaves", k.leaves, quiet);
    bad |= template_missing(b, line, "spines", k.spines, quiet);
    bad |= template_missing(b, line, "hosts_per_leaf", k.hosts_per_leaf, quiet);
    conf_link_group(b, s, "host_link", &host);
    conf_link_group(b, s, "spine_link", &spine);
    if (k.cores)
        conf_link_group(b, s, "core_link", &core);
    else if (config_setting_get_member(s, "core_link"))
        build_error(b, line, "core_link: found it without cores, expected cores = a number");
    before = b->errs->total;
    if (!bad)
        check_tiers(b, line, &k);
    if (bad || b->errs->total > before) {
        template_give_up(b);
        return;
    }
    h = template_row(b, "h", (uint64_t)k.leaves * k.hosts_per_leaf, FAB_HOST, FAB_ROLE_HOST, line);
    l = h < 0 ? h : template_row(b, "leaf", k.leaves, FAB_SWITCH, FAB_ROLE_LEAF, line);
    p = l < 0 ? l : template_row(b, "spine", k.spines, FAB_SWITCH, FAB_ROLE_SPINE, line);
    c = p < 0 || !k.cores ? p : template_row(b, "core", k.cores, FAB_SWITCH, FAB_ROLE_CORE, line);
    if (c < 0) {
        template_give_up(b);
        return;
    }
    for (unsigned i = 0; i < k.leaves * k.hosts_per_leaf; i++)
        if (build_add_link(b, (fab_id)(h + (int)i), (fab_id)(l + (int)(i / k.hosts_per_leaf)),
                           &host, line))
            return;
    (void)join_tiers(b, &k, l, p, c, &spine, &core, line); /* an error is in the list */
}

/* Adds the hosts of a template that has only hosts and links. Returns the first, or -1. */
static int only_hosts(struct build *b, config_setting_t *s, uint32_t least, uint32_t most,
                      uint32_t *n, struct link_props *link)
{
    const struct key keys[] = {
        /* How many hosts. Needed, of `full_mesh` at least 2. */
        RANGE_KEY("hosts", KEY_UINT, 0, least, most, NULL),
        /* Group of keys of a link, between two of its nodes. Needed, or in `link_defaults`. */
        OWN_KEY("host_link"),
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
        if (build_add_link(b, (fab_id)(h + (int)i), (fab_id)sw, &link, line))
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
            if (build_add_link(b, (fab_id)(h + (int)i), (fab_id)(h + (int)j), &link, line))
                return;
}
