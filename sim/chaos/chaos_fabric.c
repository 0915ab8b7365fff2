/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabrics of chaos: small presets, and made-up ones. */
#include "sim/chaos/chaos_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two pods of leaves under two spines each, and a core on top: aggregation trees of depth 3. */
static int three_tiers(unsigned *hosts, char *p, size_t room, unsigned hosts_per_leaf)
{
    int n = snprintf(p, room, "nodes = (");
    unsigned h = 0;

    for (unsigned l = 0; l < 4; l++)
        for (unsigned i = 0; i < hosts_per_leaf; i++)
            n += snprintf(p + n, room - n, "{ name = \"h%u\"; kind = \"host\"; }, ", h++);
    for (unsigned l = 0; l < 4; l++)
        n += snprintf(p + n, room - n,
                      "{ name = \"leaf%u\"; kind = \"switch\"; role = \"leaf\"; }, ", l);
    n += snprintf(p + n, room - n,
                  "{ name = \"spine0\"; kind = \"switch\"; role = \"spine\"; }, "
                  "{ name = \"spine1\"; kind = \"switch\"; role = \"spine\"; }, "
                  "{ name = \"core0\"; kind = \"switch\"; role = \"core\"; });\nlinks = (");
    for (unsigned i = 0; i < h; i++)
        n += snprintf(p + n, room - n,
                      "{ a = \"h%u\"; b = \"leaf%u\"; rate = \"400Gb/s\"; latency = \"300ns\"; }, ",
                      i, i / hosts_per_leaf);
    for (unsigned l = 0; l < 4; l++)
        n += snprintf(
            p + n, room - n,
            "{ a = \"leaf%u\"; b = \"spine%u\"; rate = \"400Gb/s\"; latency = \"300ns\"; }, ", l,
            l / 2);
    n +=
        snprintf(p + n, room - n,
                 "{ a = \"spine0\"; b = \"core0\"; rate = \"400Gb/s\"; latency = \"500ns\"; }, "
                 "{ a = \"spine1\"; b = \"core0\"; rate = \"400Gb/s\"; latency = \"500ns\"; });\n");
    *hosts = h;
    return n;
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

static int made_up(struct chaos_case *k, struct fab_errors *errs)
{
    static const unsigned mtus[] = {256, 512, 1024, 2048, 4096};
    unsigned mtu = mtus[below(k, DRAW_FABRIC, 5)], hosts;
    char text[8192];
    size_t room = sizeof(text);
    int n = snprintf(text, room,
                     "name = \"chaos\"; mtu = %u; dilation = 2; ecmp = \"%s\";\n"
                     "reduce = { groups = 4; slots = 4096; window = 256; };\n",
                     mtu, below(k, DRAW_FABRIC, 2) ? "hash" : "balanced");

    switch (below(k, DRAW_FABRIC, 3)) {
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
    default:
        three_tiers(&hosts, text + n, room - (size_t)n, 1 + (unsigned)below(k, DRAW_FABRIC, 3));
        snprintf(k->shape, sizeof(k->shape), "three tiers, %u hosts, mtu %u", hosts, mtu);
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
    rc = below(k, DRAW_FABRIC, 2) ? preset(k, errs) : made_up(k, errs);
    if (rc)
        snprintf(why, CHAOS_TEXT, "%.200s:%d: %s", errs->e[0].file, errs->e[0].line,
                 errs->e[0].text);
    free(errs);
    k->fab = k->own;
    return rc;
}
