/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of cache lines that are used together: additions and removals. */
#include "base/cacheline.h"
#include "roce/engine.h"
#include "tests/roce/rc_fixture.h"

static bool listed(const struct cacheline_list *l, const void *p, unsigned more)
{
    for (uint64_t i = 0; i < l->n; i++)
        if (l->at[i] == ((uintptr_t)p | more))
            return true;
    return false;
}

static void entries_come_and_go(void **state)
{
    struct cacheline_list l = {0};
    uint8_t *mem = cacheline_take(2 * CACHELINE_LISTED * CACHELINE);

    (void)state;
    cacheline_list_add(&l, mem, 1);
    cacheline_list_add(&l, mem + CACHELINE, CACHELINE);
    cacheline_list_add(&l, mem + 2 * CACHELINE, CACHELINE + 1);
    assert_int_equal(l.n, 3);
    assert_true(listed(&l, mem, 0));
    assert_true(listed(&l, mem + CACHELINE, 0));
    assert_true(listed(&l, mem + 2 * CACHELINE, 1));
    cacheline_list_prefetch(&l);
    cacheline_list_drop(&l, mem);
    cacheline_list_drop(&l, mem);
    assert_int_equal(l.n, 2);
    assert_false(listed(&l, mem, 0));
    for (unsigned i = 0; i < 2 * CACHELINE_LISTED; i++) /* entries beyond the capacity are left
                                                           out */
        cacheline_list_add(&l, mem + i * CACHELINE, 1);
    assert_int_equal(l.n, CACHELINE_LISTED);
    cacheline_list_prefetch(&l);
    free(mem);
}

static void a_queue_pair_is_listed_while_it_can_send(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    const struct cacheline_list *l = rnic_cachelines(e.p->s[0].r);
    struct qp_attr reset = {.state = QP_RESET};
    uint64_t n = l->n;

    (void)state;
    assert_true(listed(l, e.qp[0], (offsetof(struct qp, rsp.reads) - 1) / CACHELINE));
    assert_int_equal(qp_modify(e.qp[0], &reset), 0);
    assert_int_equal(l->n, n - 3); /* with its two queues */
    assert_false(listed(l, e.qp[0], (offsetof(struct qp, rsp.reads) - 1) / CACHELINE));
    fixture_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_and_go),
        cmocka_unit_test(a_queue_pair_is_listed_while_it_can_send),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
