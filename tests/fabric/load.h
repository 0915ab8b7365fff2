/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabrics for tests, from text or from a file under tests/fabric/conf; a test runs at the root of
 * the tree.
 */
#ifndef TRIB_TESTS_FABRIC_LOAD_H
#define TRIB_TESTS_FABRIC_LOAD_H

#include "fabric/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a)     (sizeof(a) / sizeof((a)[0]))
#define THREE_TIER "tests/fabric/conf/three-tier.conf"
#define LINKS      "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
#define REDUCE     "reduce = { };\n"

static inline struct fabric *checked(struct fabric *f, const struct fab_errors *errs)
{
    if (!f) {
        fab_errors_print(errs, stderr);
        fail_msg("the conf was refused");
    }
    return f;
}

static inline struct fabric *load_text(const char *text)
{
    static struct fab_errors errs;

    return checked(fabric_load_string(text, "test.conf", &errs), &errs);
}

static inline struct fabric *load_file(const char *path)
{
    static struct fab_errors errs;

    return checked(fabric_load(path, &errs), &errs);
}

/* A leaf/spine fabric that reduces. */
static inline struct fabric *load_leaf_spine(unsigned leaves, unsigned spines, unsigned hosts,
                                             unsigned cables, const char *more)
{
    char text[1024];

    snprintf(text, sizeof(text),
             LINKS REDUCE "leaf_spine = { leaves = %u; spines = %u; hosts_per_leaf = %u; "
                          "spine_link = { cables = %u; }; };\n%s",
             leaves, spines, hosts, cables, more);
    return load_text(text);
}

static inline uint16_t node(const struct fabric *f, const char *name)
{
    const struct fab_node *n = fabric_node(f, name);

    if (!n)
        fail_msg("no node %s", name);
    return fabric_node_index(f, n);
}

#endif
