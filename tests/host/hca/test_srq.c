/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: which depths and limits are taken, what a query says then, and when a limit is reached. */
#include "host/hca/hca_priv.h"
#include "tests/host/hca/pair.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void depths_and_pieces_have_bounds(void **state)
{
    static const struct {
        uint32_t max_wr, max_sge;
        bool taken;
    } rows[] = {
        {0, 1, false},           {1, 0, true},
        {1, ROCE_MAX_SGE, true}, {1, ROCE_MAX_SGE + 1, false},
        {HCA_MAX_WR, 1, true},   {HCA_MAX_WR + 1, 1, false},
    };
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct ibv_srq_init_attr a = {
            .srq_context = &p,
            .attr = {.max_wr = rows[i].max_wr, .max_sge = rows[i].max_sge, .srq_limit = 1}};
        struct ibv_srq *srq;
        struct ibv_srq_attr q;

        errno = 0;
        srq = ibv_create_srq(p.s[0].pd, &a);
        assert_int_equal(srq != NULL, rows[i].taken);
        assert_int_equal(errno, srq ? 0 : EINVAL);
        if (!srq)
            continue;
        assert_ptr_equal(srq->context, p.s[0].ctx);
        assert_ptr_equal(srq->pd, p.s[0].pd);
        assert_ptr_equal(srq->srq_context, &p);
        assert_int_equal(ibv_query_srq(srq, &q), 0);
        assert_int_equal(q.max_wr, rows[i].max_wr);
        assert_int_equal(q.max_sge, rows[i].max_sge);
        assert_int_equal(q.srq_limit, 0); /* which only modify sets */
        assert_int_equal(ibv_dealloc_pd(p.s[0].pd), EBUSY);
        assert_int_equal(ibv_destroy_srq(srq), 0);
    }
    pair_close(&p);
}

/* A queue of 8 with a limit, in which 4 receives wait. */
static struct ibv_srq *four_of_eight(struct side *s, uint32_t limit)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq_attr set = {.srq_limit = limit};
    struct ibv_srq *srq = ibv_create_srq(s->pd, &a);
    struct ibv_recv_wr wr[4] = {{.next = &wr[1]}, {.next = &wr[2]}, {.next = &wr[3]}, {0}}, *bad;

    assert_non_null(srq);
    assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), 0);
    assert_int_equal(ibv_modify_srq(srq, &set, IBV_SRQ_LIMIT), 0);
    return srq;
}

#define BOTH (IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)

static void a_change_is_taken_whole_or_not_at_all(void **state)
{
    static const struct {
        uint32_t armed; /* before, at most 4 */
        int mask;
        uint32_t max_wr, limit;
        int rc;
        uint32_t max_after, limit_after;
        bool reached;
    } rows[] = {
        {2, 0, 0, 9, 0, 8, 2, false}, /* what the mask does not name is not read */
        {0, IBV_SRQ_MAX_WR, 5, 9, 0, 5, 0, false},
        {0, IBV_SRQ_LIMIT, 3, 1, 0, 8, 1, false},
        {2, 4, 16, 3, EINVAL, 8, 2, false}, /* no such attribute */
        {2, IBV_SRQ_LIMIT, 0, 0, 0, 8, 0, false},
        {0, IBV_SRQ_LIMIT, 0, 4, 0, 8, 4, false},
        {0, IBV_SRQ_LIMIT, 0, 5, 0, 8, 0, true}, /* there are fewer already */
        {0, IBV_SRQ_LIMIT, 0, 8, 0, 8, 0, true},
        {2, IBV_SRQ_LIMIT, 0, 9, EINVAL, 8, 2, false},
        {0, IBV_SRQ_MAX_WR, 0, 3, EINVAL, 8, 0, false},
        {0, IBV_SRQ_MAX_WR, 3, 0, EINVAL, 8, 0, false}, /* four wait */
        {4, IBV_SRQ_MAX_WR, 4, 0, 0, 4, 4, false},
        {0, IBV_SRQ_MAX_WR, HCA_MAX_WR, 0, 0, HCA_MAX_WR, 0, false},
        {0, IBV_SRQ_MAX_WR, HCA_MAX_WR + 1, 0, EINVAL, 8, 0, false},
        {0, BOTH, 5, 5, 0, 5, 0, true},
        {1, BOTH, 5, 6, EINVAL, 8, 1, false},
        {4, BOTH, 16, 3, 0, 16, 3, false},
    };
    struct ibv_async_event ev;
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct ibv_srq *srq = four_of_eight(&p.s[0], rows[i].armed);
        struct ibv_srq_attr a = {.max_wr = rows[i].max_wr, .srq_limit = rows[i].limit}, q;
        struct ibv_recv_wr wr = {0}, *bad;
        uint32_t room = 0;

        assert_int_equal(ibv_modify_srq(srq, &a, rows[i].mask), rows[i].rc);
        assert_int_equal(ibv_query_srq(srq, &q), 0);
        assert_int_equal(q.max_wr, rows[i].max_after);
        assert_int_equal(q.srq_limit, rows[i].limit_after);
        assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), rows[i].reached ? 0 : -1);
        if (rows[i].reached) {
            assert_int_equal(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
            assert_ptr_equal(ev.element.srq, srq);
            assert_int_equal(ibv_destroy_srq(srq), EBUSY); /* before it is acknowledged */
            ibv_ack_async_event(&ev);
        }
        while (!ibv_post_srq_recv(srq, &wr, &bad))
            room++;
        assert_ptr_equal(bad, &wr);
        assert_int_equal(room, rows[i].max_after - 4);
        assert_int_equal(ibv_destroy_srq(srq), 0);
    }
    pair_close(&p);
}

/* A list stops at its first bad request, which is given back. */
static void a_list_of_receives_stops_at_the_first_bad_one(void **state)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_sge sge[2] = {{0, 0, 0}, {0, 0, 0}};
    struct ibv_recv_wr wr[3], *bad = NULL;
    struct ibv_srq *srq;
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned wrong = 0; wrong <= 3; wrong++) {
        uint32_t room = 0;

        srq = ibv_create_srq(p.s[0].pd, &a);
        for (unsigned i = 0; i < 3; i++)
            wr[i] = (struct ibv_recv_wr){.wr_id = i,
                                         .next = i < 2 ? &wr[i + 1] : NULL,
                                         .sg_list = sge,
                                         .num_sge = i == wrong ? 2 : 1};
        assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), wrong < 3 ? EINVAL : 0);
        if (wrong < 3)
            assert_ptr_equal(bad, &wr[wrong]);
        wr[0].next = NULL, wr[0].num_sge = 0;
        while (!ibv_post_srq_recv(srq, wr, &bad))
            room++;
        assert_int_equal(room, 8 - wrong);
        assert_int_equal(ibv_destroy_srq(srq), 0);
    }
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depths_and_pieces_have_bounds),
        cmocka_unit_test(a_change_is_taken_whole_or_not_at_all),
        cmocka_unit_test(a_list_of_receives_stops_at_the_first_bad_one),
    };

    return cmocka_run_group_tests_name("hca/srq", tests, NULL, NULL);
}
