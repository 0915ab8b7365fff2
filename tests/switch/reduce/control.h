/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of groups' control messages: a fabric, groups on it, what members expect. */
#ifndef TRIB_TESTS_SWITCH_REDUCE_CONTROL_H
#define TRIB_TESTS_SWITCH_REDUCE_CONTROL_H

#include "tests/support/agg_fixture.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define LINKS  "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
#define SHAPE  "mtu = 1024; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 4; };\n"
#define LEAVES LINKS "reduce = { };\n" SHAPE

static const unsigned six[] = {0, 1, 2, 4, 5, 6}; /* ranks 0..2 at leaf0, 3..5 at leaf1 */

static inline struct agg_fixture *agg_fixture_of(const char *conf, uint64_t seed)
{
    return agg_fixture_create(&(struct agg_fixture_cfg){.conf = conf, .seed = seed});
}

static inline struct an *an_of(struct agg_fixture *b, const char *name)
{
    return b->an[fabric_node_index(b->f, fabric_node(b->f, name))];
}

static inline void join_some(struct agg_fixture *b, struct member *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        agg_fixture_join(&m[i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 400 * PS_PER_MS));
}

static inline struct member *joined(struct agg_fixture *b, const unsigned *ids, unsigned n)
{
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, ids, n);

    join_some(b, m, n);
    for (unsigned i = 0; i < n; i++)
        if (m[i].state != MEMBER_IN)
            fail_msg("%s: %s", agg_status_name(m[i].status), m[i].text);
    return m;
}

static inline void start(struct member *m, struct agg_fixture_op op)
{
    op.in = agg_fixture_alloc(m->b, op.total + 8);
    op.out = agg_fixture_alloc(m->b, op.total + 8);
    agg_fixture_start(m, &op);
}

static inline struct agg_fixture_op floats(uint64_t bytes)
{
    return (struct agg_fixture_op){.coll = AGG_ALLREDUCE, .dtype = DT_FP32, .total = bytes};
}

static inline void expect(const struct member *m, enum member_state st, enum agg_status why,
                          const char *words)
{
    if (m->state != st || m->status != why || !strstr(m->text, words))
        fail_msg("member %u: state %d, %s \"%s\"; expected %d, %s \"%s\"", m->id, m->state,
                 agg_status_name(m->status), m->text, st, agg_status_name(why), words);
}

static inline void expect_all(struct agg_fixture *b, enum member_state st, enum agg_status why,
                              const char *words)
{
    for (unsigned i = 0; i < b->n; i++)
        if (!b->member[i].deaf && b->member[i].state != MEMBER_LEFT)
            expect(&b->member[i], st, why, words);
}

static inline void nothing_is_held(struct agg_fixture *b)
{
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        if (b->an[i] && !b->an_dead[i])
            assert_true(an_idle(b->an[i]));
}

#endif
