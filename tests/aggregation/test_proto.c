/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of members in a JOIN: a bit each, or spans where ids are too many for one packet. */
#include "aggregation/arith.h"
#include "aggregation/proto.h"
#include "fabric/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

/* Members from first to last, `step` apart, but for one. */
static struct fab_members some(unsigned first, unsigned last, unsigned step, unsigned without)
{
    struct fab_members m = {.ranks_per_host = 3};

    for (unsigned id = first; id <= last; id += step)
        if (id != without)
            fab_members_add(&m, id);
    return m;
}

static void a_list_is_read_as_it_was_written(void **state)
{
    static const struct {
        unsigned first, last, step, without, spans;
    } row[] = {
        {0, 1023, 1, 9999, 0},    {5, 1000, 7, 12, 0},      {1023, 1023, 1, 9999, 0},
        {0, 4095, 1, 9999, 1},    {1024, 1024, 1, 9999, 1}, {3, 4095, 8, 9999, 1},
        {0, 4095, 1, 17, 2},      {0, 4095, 1, 1, 2},       {0, 4095, 8, 2048, 2},
        {4095, 4095, 1, 9999, 1}, {1000, 1030, 1, 9999, 1},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct fab_members m = some(row[i].first, row[i].last, row[i].step, row[i].without), got;
        struct agg_ctl c = {0};

        assert_int_equal(agg_members_write(&c, &m), 0);
        assert_int_equal(rte_be_to_cpu_16(c.n_spans), row[i].spans);
        assert_int_equal(agg_members_read(&c, &got), 0);
        assert_int_equal(got.ranks_per_host, 3);
        assert_memory_equal(got.bits, m.bits, sizeof(m.bits));
    }
}

static void what_takes_too_many_spans_is_not_written(void **state)
{
    struct fab_members m = some(0, 4095, 1, 9999);
    struct agg_ctl c = {0};

    (void)state;
    for (unsigned i = 0, id = 100; i < AGG_SPANS; i++, id += 10 + i)
        m.bits[id / 64] &= ~(1ull << id % 64);
    assert_int_equal(agg_members_write(&c, &m), -E2BIG);
}

static void spans_that_are_no_list_are_refused(void **state)
{
    static const struct {
        uint16_t n, first, count, stride;
    } row[] = {
        {22, 0, 1, 1},   {1, 0, 0, 1},       {1, 0, 2, 0}, {1, 4096, 1, 1},  {1, 0, 4097, 1},
        {1, 4095, 2, 1}, {1, 1, 512, 65535}, {2, 0, 4, 1}, {1, 65535, 1, 1}, {0xffff, 0, 1, 1},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct agg_ctl c = {.n_spans = rte_cpu_to_be_16(row[i].n)};
        struct fab_members m;

        /* The second of two is all zeros. */
        c.span[0] = (struct agg_span){.first = rte_cpu_to_be_16(row[i].first),
                                      .count = rte_cpu_to_be_16(row[i].count),
                                      .stride = rte_cpu_to_be_16(row[i].stride)};
        assert_int_equal(agg_members_read(&c, &m), -EINVAL);
    }
}

static void spans_that_overlap_are_refused(void **state)
{
    const struct agg_span later = {RTE_BE16(10), RTE_BE16(3), RTE_BE16(2)};
    struct agg_ctl c = {.n_spans = RTE_BE16(2), .span = {later, later}};
    struct fab_members m;

    (void)state;
    c.span[1].first = RTE_BE16(11);
    assert_int_equal(agg_members_read(&c, &m), 0); /* between those of the first */
    c.span[1].first = RTE_BE16(10);
    assert_int_equal(agg_members_read(&c, &m), -EINVAL);
    c.span[1].first = RTE_BE16(1);
    assert_int_equal(agg_members_read(&c, &m), -EINVAL);
}

static void a_message_begins_before_the_end_of_its_vector(void **state)
{
    uint64_t max = AGG_MSG_BYTES(1024);
    struct agg_hdr h = {.version = AGG_VERSION,
                        .type = AGG_DATA,
                        .coll = AGG_ALLREDUCE,
                        .dtype = DT_INT32,
                        .op = OP_SUM,
                        .msg_len = rte_cpu_to_be_32((uint32_t)max),
                        .total = rte_cpu_to_be_64(2 * max),
                        .offset = rte_cpu_to_be_64(max)};
    const char *what;

    (void)state;
    assert_int_equal(agg_hdr_check(&h, AGG_DATA, 1024, &what), AGG_OK);
    h.offset = h.total;
    h.msg_len = 0;
    assert_int_equal(agg_hdr_check(&h, AGG_DATA, 1024, &what), AGG_E_PROTOCOL);
    assert_string_equal(what, "offset");
    h.offset = h.total = 0; /* of no elements there is one message */
    assert_int_equal(agg_hdr_check(&h, AGG_DATA, 1024, &what), AGG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read_as_it_was_written),
        cmocka_unit_test(what_takes_too_many_spans_is_not_written),
        cmocka_unit_test(spans_that_are_no_list_are_refused),
        cmocka_unit_test(spans_that_overlap_are_refused),
        cmocka_unit_test(a_message_begins_before_the_end_of_its_vector),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
