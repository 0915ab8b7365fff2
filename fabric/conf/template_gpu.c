/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Templates of GPU nodes:
 *
 *   gpu_nodes = {
 *       nodes  = 128;                 n0, n1, ...
 *       gpus   = 8;                   of a node: n0g0, n0g1, ...
 *       planes = ( 5, 4, 4, 5 );      NVSwitches of a node, n0s0, ...: links of each GPU to each
 *       nvlink = { rate = "25GB/s"; latency = "300ns"; };      one of those links
 *       nic    = { rate = "400Gb/s"; latency = "300ns"; };     of each GPU, with rails
 *   };
 *   rails = {
 *       unit   = 32;                  nodes of a unit; GPU i of every node hangs on leaf i of its
 *       leaves = 8;                   unit (i mod leaves)
 *       spines = 16;                  of all pods; every leaf has spine_link to every spine of its
 *       spine_link = { ... };         pod
 *       pods = 4; cores = 64; core_groups = 2; core_link = { ... };     a third tier
 *   };
 *
 * The links of a GPU to one plane are one port of so many times the rate. A GPU's ports: planes in
 * order, then the NIC. Hosts come first, then leaves, spines, cores, NVSwitches.
 */
#include "fabric/build.h"

#include <errno.h>

#define LEN(a)     (sizeof(a) / sizeof((a)[0]))
#define MAX_PLANES (FAB_MAX_HOST_PORTS - 1)
#define MAX_LANES  64
#define MAX_RATE   100000000000000ull

struct gpus {
    uint32_t nodes, gpus, n_planes, lanes[MAX_PLANES];
    bool multimem;
    struct fab_reduce reduce;
    struct link_props nvlink, nic;
    int line, first; /* node index of n0g0 */
};

struct rails {
    uint32_t unit, leaves, spines, pods, cores, groups;
    struct link_props spine, core;
    int line, leaf0, spine0, core0; /* node indices */
};

static int read_planes(struct build *b, config_setting_t *parent, struct gpus *g)
{
    config_setting_t *s = config_setting_get_member(parent, "planes");

    if (!s) {
        build_error(b, g->line, "found no planes, expected planes = ( 5, 4, 4, 5 ) or the like");
        return -EINVAL;
    }
    g->n_planes = config_setting_is_aggregate(s) ? (uint32_t)config_setting_length(s) : 0;
    for (unsigned i = 0; i < g->n_planes && i < MAX_PLANES; i++) {
        const config_setting_t *e = config_setting_get_elem(s, i);
        int v = config_setting_type(e) == CONFIG_TYPE_INT ? config_setting_get_int(e) : 0;

        g->lanes[i] = v >= 1 && v <= MAX_LANES ? (uint32_t)v : 0;
        if (!g->lanes[i])
            g->n_planes = 0;
    }
    if (config_setting_is_group(s) || !g->n_planes || g->n_planes > MAX_PLANES) {
        keys_expected(b, s, "a list ( 5, 4, 4, 5 ): the links of a GPU to each of up to 19 planes");
        return -EINVAL;
    }
    for (unsigned i = 0; i < g->n_planes; i++)
        if (g->nvlink.rate_bps > MAX_RATE / g->lanes[i]) {
            keys_expected(b, s, "planes of up to 100 Tb/s");
            return -EINVAL;
        }
    return 0;
}

static int read_gpus(struct build *b, config_setting_t *s, bool has_rails, struct gpus *g)
{
    static const struct key keys[] = {
        /* Nodes; more than one need `rails`. */
        RANGE_KEY("nodes", KEY_UINT, offsetof(struct gpus, nodes), 1, FAB_MAX_HOSTS, "1"),
        /* Of a node. Needed. */
        RANGE_KEY("gpus", KEY_UINT, offsetof(struct gpus, gpus), 1, FAB_MAX_PORTS, NULL),
        /* For each NVSwitch of a node, how many NVLinks a GPU has to it, as `( 5, 4, 4, 5 )`;
         * together they are one port with the sum of their rates. Needed. */
        OWN_KEY("planes"),
        /* One NVLink, a group of keys of a link. Needed, or in `link_defaults`. */
        OWN_KEY("nvlink"),
        /* The link of each GPU to its leaf, a group of keys of a link; with `rails`. Needed there,
         * or in `link_defaults`. */
        OWN_KEY("nic"),
        /* Whether NVSwitches offer multicast regions. */
        PLAIN_KEY("multimem", KEY_BOOL, offsetof(struct gpus, multimem), "true"),
        /* Quotas of the NVSwitches' aggregation nodes. Default: the file's `reduce`. */
        OWN_KEY("reduce"),
    };
    unsigned before = b->errs->total;
    config_setting_t *reduce;
    bool quiet;

    *g = (struct gpus){.reduce = b->reduce_default};
    keys_initial(keys, LEN(keys), g);
    g->line = (int)config_setting_source_line(s);
    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { nodes; gpus; planes; nvlink; nic; }");
        return -EINVAL;
    }
    keys_read(b, s, keys, LEN(keys), g);
    quiet = b->errs->total > before;
    template_missing(b, g->line, "gpus", g->gpus, quiet);
    conf_link_group(b, s, "nvlink", &g->nvlink);
    if (has_rails)
        conf_link_group(b, s, "nic", &g->nic);
    else if (config_setting_get_member(s, "nic"))
        build_error(b, g->line, "nic: found it without rails, expected the network that it is on");
    reduce = config_setting_get_member(s, "reduce");
    if (reduce)
        conf_reduce(b, reduce, &g->reduce);
    read_planes(b, s, g);
    return b->errs->total > before ? -EINVAL : 0;
}

static int read_rails(struct build *b, config_setting_t *s, const struct gpus *g, struct rails *r)
{
    static const struct key keys[] = {
        /* Nodes of a scalable unit. Default: all nodes. */
        RANGE_KEY("unit", KEY_UINT, offsetof(struct rails, unit), 1, FAB_MAX_HOSTS, NULL),
        /* Of a unit: GPU i of every node is attached to leaf i mod `leaves` of its unit. Needed.
         * */
        RANGE_KEY("leaves", KEY_UINT, offsetof(struct rails, leaves), 1, FAB_MAX_NODES, NULL),
        /* Of the whole fabric; `spine_link` joins every leaf with every spine of its pod. Default:
         * 0. */
        RANGE_KEY("spines", KEY_UINT, offsetof(struct rails, spines), 1, FAB_MAX_NODES, NULL),
        /* Group of keys of a link, with `spines`. Needed there, or in `link_defaults`. */
        OWN_KEY("spine_link"),
        /* Pods into which units and spines are divided, in order; more than one need `cores`. */
        RANGE_KEY("pods", KEY_UINT, offsetof(struct rails, pods), 1, FAB_MAX_NODES, "1"),
        /* Of the whole fabric; `core_link` joins every spine with every core of its group.
         * Default: 0. */
        RANGE_KEY("cores", KEY_UINT, offsetof(struct rails, cores), 1, FAB_MAX_NODES, NULL),
        /* Groups into which cores, and the spines of each pod, are divided. */
        RANGE_KEY("core_groups", KEY_UINT, offsetof(struct rails, groups), 1, FAB_MAX_NODES, "1"),
        /* Group of keys of a link, with `cores`. Needed, or in `link_defaults`. */
        OWN_KEY("core_link"),
    };
    unsigned before = b->errs->total;

    *r = (struct rails){.unit = g->nodes};
    keys_initial(keys, LEN(keys), r);
    r->line = (int)config_setting_source_line(s);
    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { unit; leaves; spines; spine_link; }");
        return -EINVAL;
    }
    keys_read(b, s, keys, LEN(keys), r);
    template_missing(b, r->line, "leaves", r->leaves, b->errs->total > before);
    if (r->spines)
        conf_link_group(b, s, "spine_link", &r->spine);
    if (r->cores)
        conf_link_group(b, s, "core_link", &r->core);
    if (b->errs->total > before)
        return -EINVAL;
    template_divides(b, r->line, "nodes", g->nodes, "unit", r->unit);
    template_divides(b, r->line, "units", g->nodes / r->unit, "pods", r->pods);
    template_divides(b, r->line, "spines", r->spines, "pods", r->pods);
    template_divides(b, r->line, "cores", r->cores, "core_groups", r->groups);
    template_divides(b, r->line, "spines of a pod", r->spines / r->pods, "core_groups", r->groups);
    if (r->cores && !r->spines)
        build_error(b, r->line, "cores: found it without spines, expected those that it joins");
    if (!r->cores && r->pods > 1)
        build_error(b, r->line, "pods: found %u without cores, expected cores that join them",
                    r->pods);
    return b->errs->total > before ? -EINVAL : 0;
}

static int add_switches(struct build *b, const struct gpus *g, struct rails *r)
{
    unsigned units = g->nodes / r->unit;
    int rc =
        template_row(b, "leaf", (uint64_t)units * r->leaves, FAB_SWITCH, FAB_ROLE_LEAF, r->line);

    r->leaf0 = rc;
    if (rc >= 0 && r->spines)
        rc = r->spine0 = template_row(b, "spine", r->spines, FAB_SWITCH, FAB_ROLE_SPINE, r->line);
    if (rc >= 0 && r->cores)
        rc = r->core0 = template_row(b, "core", r->cores, FAB_SWITCH, FAB_ROLE_CORE, r->line);
    return rc;
}

/* Adds the links between switches, leaf by leaf, then spine by spine. */
static int add_upper_links(struct build *b, const struct gpus *g, const struct rails *r)
{
    unsigned leaves = g->nodes / r->unit * r->leaves, spines = r->spines / r->pods;
    int rc = 0;

    for (unsigned l = 0; l < leaves; l++) {
        unsigned pod = l / (leaves / r->pods);

        for (unsigned s = pod * spines; s < (pod + 1) * spines && !rc; s++)
            rc = build_add_link(b, (fab_id)(r->leaf0 + (int)l), (fab_id)(r->spine0 + (int)s),
                                &r->spine, r->line);
    }
    for (unsigned s = 0; s < r->spines && r->cores; s++) {
        unsigned cores = r->cores / r->groups, group = s % spines / (spines / r->groups);

        for (unsigned c = group * cores; c < (group + 1) * cores && !rc; c++)
            rc = build_add_link(b, (fab_id)(r->spine0 + (int)s), (fab_id)(r->core0 + (int)c),
                                &r->core, r->line);
    }
    return rc;
}

/* Adds the NVSwitches of node n and the links of its GPUs to them. */
static int add_planes(struct build *b, const struct gpus *g, unsigned n)
{
    char stem[FAB_NAME];
    int first, rc = 0;

    snprintf(stem, sizeof(stem), "n%us", n);
    first = template_row(b, stem, g->n_planes, FAB_SWITCH, FAB_ROLE_NVSWITCH, g->line);
    if (first < 0)
        return first;
    for (unsigned p = 0; p < g->n_planes; p++) {
        struct fab_node *sw = &b->f->nodes[first + (int)p];
        struct link_props link = g->nvlink;

        sw->multimem = g->multimem;
        sw->reduce = g->reduce;
        link.lanes = g->lanes[p];
        link.rate_bps *= g->lanes[p];
        for (unsigned i = 0; i < g->gpus && !rc; i++)
            rc = build_add_link(b, (fab_id)(g->first + (int)(n * g->gpus + i)),
                                (fab_id)(first + (int)p), &link, g->line);
    }
    return rc;
}

static int add_hosts(struct build *b, struct gpus *g)
{
    char stem[FAB_NAME];

    for (unsigned n = 0; n < g->nodes; n++) {
        int rc;

        snprintf(stem, sizeof(stem), "n%ug", n);
        rc = template_row(b, stem, g->gpus, FAB_HOST, FAB_ROLE_HOST, g->line);
        if (rc == -ENOSPC)
            build_over(b, &b->over_hosts, (uint64_t)(g->nodes - n - 1) * g->gpus, g->line);
        if (rc < 0)
            return rc;
        if (!n)
            g->first = rc;
    }
    return 0;
}

static int add_nics(struct build *b, const struct gpus *g, const struct rails *r)
{
    int rc = 0;

    for (unsigned i = 0; i < g->nodes * g->gpus && !rc; i++) {
        unsigned leaf = i / g->gpus / r->unit * r->leaves + i % g->gpus % r->leaves;

        rc = build_add_link(b, (fab_id)(g->first + (int)i), (fab_id)(r->leaf0 + (int)leaf), &g->nic,
                            g->line);
    }
    return rc;
}

void conf_gpu_nodes(struct build *b, config_setting_t *s, config_setting_t *rails)
{
    struct gpus g = {0};
    struct rails r = {.unit = 1};
    int rc = read_gpus(b, s, rails != NULL, &g);

    if (rails && !rc)
        rc = read_rails(b, rails, &g, &r);
    if (!rc)
        rc = add_hosts(b, &g);
    if (!rc && rails && add_switches(b, &g, &r) < 0)
        rc = -ENOSPC;
    for (unsigned n = 0; n < g.nodes && !rc; n++)
        rc = add_planes(b, &g, n);
    if (!rc && rails)
        rc = add_nics(b, &g, &r);
    if (!rc && rails)
        rc = add_upper_links(b, &g, &r);
    if (rc)
        template_give_up(b);
}
