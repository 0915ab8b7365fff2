/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabrics of chaos: small presets, and generated ones. */
#include "sim/chaos/chaos_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fabric_text {
    char *at;
    size_t room;
};

static void fabric_text_put(struct fabric_text *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void fabric_text_put(struct fabric_text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->at, t->room, fmt, ap);
    va_end(ap);
    T_ASSERT(n >= 0 && (size_t)n < t->room, "a made-up fabric does not fit into its buffer");
    t->at += n;
    t->room -= (size_t)n;
}

static void put_link(struct fabric_text *t, const char *a, unsigned i, const char *b, unsigned k,
                     unsigned ns)
{
    fabric_text_put(t, "{ a = \"%s%u\"; b = \"%s%u\"; rate = \"400Gb/s\"; latency = \"%uns\"; }, ",
                    a, i, b, k, ns);
}

/* Two pods of two leaves under `wide` spines each, and a core on top: aggregation trees of depth 3,
 * and, with several spines, paths down that depend on the destination. */
static unsigned three_tiers(struct fabric_text *t, unsigned hosts_per_leaf, unsigned wide,
                            unsigned core_slots, unsigned core_window)
{
    unsigned h = 4 * hosts_per_leaf;

    fabric_text_put(t, "nodes = (");
    for (unsigned i = 0; i < h; i++)
        fabric_text_put(t, "{ name = \"h%u\"; kind = \"host\"; }, ", i);
    for (unsigned l = 0; l < 4; l++)
        fabric_text_put(t, "{ name = \"leaf%u\"; kind = \"switch\"; role = \"leaf\"; }, ", l);
    for (unsigned s = 0; s < 2 * wide; s++)
        fabric_text_put(t, "{ name = \"spine%u\"; kind = \"switch\"; role = \"spine\"; }, ", s);
    fabric_text_put(
        t,
        "{ name = \"core0\"; kind = \"switch\"; role = \"core\"; reduce = { groups = 4; slots = "
        "%u; window = %u; }; });\nlinks = (",
        core_slots, RTE_MIN(core_slots, core_window));
    for (unsigned i = 0; i < h; i++)
        put_link(t, "h", i, "leaf", i / hosts_per_leaf, 300);
    for (unsigned l = 0; l < 4; l++)
        for (unsigned s = 0; s < wide; s++)
            put_link(t, "leaf", l, "spine", l / 2 * wide + s, 300);
    for (unsigned s = 0; s < 2 * wide; s++)
        put_link(t, "spine", s, "core", 0, 500);
    t->at -= 2; /* drop the last comma */
    t->room += 2;
    fabric_text_put(t, ");\n");
    return h;
}

static const char *const presets[] = {
    "two-hosts.conf",  "single-switch-4.conf", "leaf-spine-8.conf", "rail-2x4.conf",
    "h100-node.conf",  "a100-node.conf",       "b200-node.conf",    "rail-2x8.conf",
    "npu-mesh-8.conf", "npu-star-8.conf",
};
#define PRESETS (sizeof(presets) / sizeof(presets[0]))

static int preset(struct chaos_case *k, struct fab_errors *errs)
{
    char path[1024];

    snprintf(k->conf, sizeof(k->conf), "%s", presets[below(k, DRAW_FABRIC, PRESETS)]);
    snprintf(path, sizeof(path), "%s/%s", k->cfg->conf_dir, k->conf);
    k->own = fabric_load(path, errs);
    if (k->own)
        snprintf(k->shape, sizeof(k->shape), "%s", k->own->name);
    return k->own ? 0 : -EINVAL;
}

/* Short queues that pause their senders, or mark. */
static const char *queues(struct chaos_case *k)
{
    static const char *const of[] = {
        "", "", "link_defaults = { buffer = \"16KiB\"; };\n",
        "dcqcn = { }; link_defaults = { buffer = \"64KiB\"; ecn = \"8KiB\"; };\n"};

    return of[below(k, DRAW_FABRIC, 4)];
}

/* Writes a GPU node: its GPUs and NVSwitches, and a rail. */
static unsigned gpu_node(struct fabric_text *t, unsigned gpus, unsigned links)
{
    fabric_text_put(
        t,
        "gpu_nodes = { gpus = %u; planes = ( %u, 2 ); nvlink = { rate = \"25GB/s\"; latency = "
        "\"300ns\"; }; nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };\n"
        "rails = { leaves = 1; };\n",
        gpus, links);
    return gpus;
}

/* ---- rates that differ ---- */

static unsigned some_rate(struct chaos_case *k)
{
    static const unsigned gbps[] = {40, 100, 200, 400};

    return gbps[below(k, DRAW_UNEVEN, 4)];
}

static void uneven_link(struct chaos_case *k, struct fabric_text *t, const char *a, unsigned i,
                        const char *b, unsigned n)
{
    fabric_text_put(t, "{ a = \"%s%u\"; b = \"%s%u\"; rate = \"%uGb/s\"; }, ", a, i, b, n,
                    some_rate(k));
}

static void uneven_nodes(struct fabric_text *t, const char *what, unsigned n, const char *role)
{
    for (unsigned i = 0; i < n; i++)
        fabric_text_put(t, "{ name = \"%s%u\"; %s; }, ", what, i, role);
}

/* Hosts with one to three ports, every second host in the other order of leaves, and spines that are
 * linked to all leaves by rates of their own: then some leaves but the first lack a host. Or leaves
 * alone. */
static int uneven(struct chaos_case *k, struct fab_errors *errs)
{
    unsigned leaves = 1 + (unsigned)below(k, DRAW_UNEVEN, 3),
             spines = (unsigned)below(k, DRAW_UNEVEN, leaves > 1 ? 3 : 2),
             hosts = 2 + (unsigned)below(k, DRAW_UNEVEN, 5), ports = 0;
    bool scarce = !below(k, DRAW_UNEVEN, 4);
    unsigned slots = scarce ? 256 + 64 * (unsigned)below(k, DRAW_UNEVEN, 6) : 4096;
    unsigned mtu = 256u << below(k, DRAW_UNEVEN, 5);
    char text[8192];
    struct fabric_text t = {text, sizeof(text)};

    fabric_text_put(
        &t,
        "name = \"chaos\"; mtu = %u; dilation = 2; link_defaults = { latency = \"300ns\"; };\n"
        "reduce = { groups = %u; slots = %u; window = 256; };\nnodes = (",
        mtu, scarce ? 2 : 8, slots);
    uneven_nodes(&t, "h", hosts, "kind = \"host\"");
    uneven_nodes(&t, "leaf", leaves, "role = \"leaf\"");
    uneven_nodes(&t, "spine", spines, "role = \"spine\"");
    t.at -= 2, t.room += 2; /* drop the last comma */
    fabric_text_put(&t, ");\nlinks = (");
    for (unsigned h = 0; h < hosts; h++)
        for (unsigned p = 0, n = leaves < 2 ? 2 : leaves; p < n; p++) {
            unsigned leaf = (h % 2 ? n - 1 - p : p) % leaves;

            if (leaf && spines && !below(k, DRAW_UNEVEN, 6))
                continue;
            uneven_link(k, &t, "h", h, "leaf", leaf);
            ports++;
        }
    for (unsigned l = 0; l < leaves; l++)
        for (unsigned s = 0; s < spines; s++)
            uneven_link(k, &t, "leaf", l, "spine", s);
    t.at -= 2, t.room += 2;
    fabric_text_put(&t, ");\n");
    snprintf(k->shape, sizeof(k->shape), "uneven, %u leaves, %u spines, %u hosts with %u ports",
             leaves, spines, hosts, ports);
    k->uneven = true;
    k->conf_text = strdup(text);
    k->own = k->conf_text ? fabric_load_string(text, "chaos", errs) : NULL;
    return k->own ? 0 : -EINVAL;
}

static int made_up(struct chaos_case *k, struct fab_errors *errs)
{
    static const unsigned mtus[] = {256, 512, 1024, 2048, 4096};
    unsigned mtu = mtus[below(k, DRAW_FABRIC, 5)], hosts, wide, last;
    char text[8192];
    size_t room = sizeof(text);
    const char *ecmp = below(k, DRAW_FABRIC, 2) ? "hash" : "balanced";
    bool scarce = !below(k, DRAW_FABRIC, 4); /* room for about one or two jobs */
    unsigned groups = scarce ? 1 + (unsigned)below(k, DRAW_FABRIC, 3) : 4;
    unsigned slots = scarce ? 256 + 64 * (unsigned)below(k, DRAW_FABRIC, 6) : 4096;
    int n = snprintf(text, room,
                     "name = \"chaos\"; mtu = %u; dilation = 2; ecmp = \"%s\";\n"
                     "reduce = { groups = %u; slots = %u; window = 256; };\n%s",
                     mtu, ecmp, groups, slots, queues(k));

    switch (below(k, DRAW_FABRIC, 5)) {
    case 0:
        hosts = 2 + (unsigned)below(k, DRAW_FABRIC, 15);
        snprintf(k->shape, sizeof(k->shape), "one switch, %u hosts, mtu %u", hosts, mtu);
        snprintf(text + n, room - (size_t)n,
                 "single_switch = { hosts = %u; host_link = { rate = \"400Gb/s\"; latency = "
                 "\"300ns\"; }; };\n",
                 hosts);
        break;
    case 1: {
        unsigned leaves = 2 + (unsigned)below(k, DRAW_FABRIC, 3),
                 spines = 1 + (unsigned)below(k, DRAW_FABRIC, 3),
                 each = 1 + (unsigned)below(k, DRAW_FABRIC, 4);

        snprintf(k->shape, sizeof(k->shape), "%u leaves, %u spines, %u hosts a leaf, mtu %u",
                 leaves, spines, each, mtu);
        snprintf(text + n, room - (size_t)n,
                 "leaf_spine = { leaves = %u; spines = %u; hosts_per_leaf = %u; "
                 "host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; "
                 "spine_link = { rate = \"400Gb/s\"; latency = \"%uns\"; }; };\n",
                 leaves, spines, each, 100 + (unsigned)below(k, DRAW_FABRIC, 900));
        break;
    }
    case 2:
        last = 1 + (unsigned)below(k, DRAW_FABRIC, 5);
        hosts = gpu_node(&(struct fabric_text){text + n, room - (size_t)n},
                         2 + (unsigned)below(k, DRAW_FABRIC, 7), last);
        snprintf(k->shape, sizeof(k->shape), "a node of %u GPUs, mtu %u", hosts, mtu);
        break;
    default:
        wide = 1 + (unsigned)below(k, DRAW_FABRIC, 2);
        last = 8u << below(k, DRAW_FABRIC, 6);
        hosts = three_tiers(&(struct fabric_text){text + n, room - (size_t)n},
                            1 + (unsigned)below(k, DRAW_FABRIC, 3), wide,
                            scarce ? slots / 8 : slots, last);
        snprintf(k->shape, sizeof(k->shape), "three tiers, %u spines a pod, %u hosts, mtu %u", wide,
                 hosts, mtu);
    }
    T_ASSERT(strlen(text) + 1 < sizeof(text), "a made-up fabric does not fit into its buffer");
    k->conf_text = strdup(text);
    k->own = k->conf_text ? fabric_load_string(text, "chaos", errs) : NULL;
    return k->own ? 0 : -EINVAL;
}

int chaos_draw_fabric(struct chaos_case *k, char *why)
{
    struct fab_errors *errs;
    int rc;

    if (k->cfg->fab) {
        k->fab = k->cfg->fab;
        snprintf(k->conf, sizeof(k->conf), "%s%s", strchr(k->cfg->conf, '/') ? "" : "./",
                 k->cfg->conf);
        snprintf(k->shape, sizeof(k->shape), "%s", k->fab->name);
        return 0;
    }
    errs = calloc(1, sizeof(*errs));
    if (!errs)
        return -ENOMEM;
    if (!below(k, DRAW_UNEVEN, 10))
        rc = uneven(k, errs);
    else
        rc = below(k, DRAW_FABRIC, 2) ? preset(k, errs) : made_up(k, errs);
    if (rc)
        snprintf(why, CHAOS_TEXT, "%.200s:%d: %s", errs->e[0].file, errs->e[0].line,
                 errs->e[0].text);
    free(errs);
    k->fab = k->own;
    return rc;
}
