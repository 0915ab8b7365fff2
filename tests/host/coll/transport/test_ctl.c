/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams that would end a job, from somebody who knows its group, queue pairs and addresses. */
#include "aggregation/proto.h"
#include "host/coll/comm.h"
#include "tests/host/coll/coll_fixture.h"

#define SHARP (1u << ALGO_SHARP)
#define GROUP 7
#define KEY   0x5ec3e7

/* As in ctl.c: a phase, and the reason of a failure. */
struct phase_msg {
    struct ctl_head head;
    uint8_t version, phase, seen, answer;
    char text[184];
};

static const struct seal_key job = {.key = KEY, .group = GROUP};

static struct phase_msg failed(void)
{
    return (struct phase_msg){.head.magic = RTE_BE32(0x54524250),
                              .version = 2,
                              .phase = PHASE_FAILED,
                              .text = "rank 2 (h2): forged"};
}

/* Sends bytes from rank 1's queue pair to rank 0's, and waits until they have been received. */
static void say(struct fixture *g, const void *msg, size_t len)
{
    struct comm *from = g->comm[1];
    struct peer *p = &from->ctl.peer[0];

    if (!p->ah)
        p->ah = ud_address(&from->port[p->port], &p->gid);
    assert_non_null(p->ah);
    assert_true(ctl_send(from, p->port, p->ah, p->qpn, msg, len));
    fixture_run(g, 100 * PS_PER_US, true, fixture_never);
}

static struct fixture *three_ranks(void)
{
    struct fixture *g = fixture_new(3, 1, 4096, NULL);

    fixture_connect(g, SHARP, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    return g;
}

static void a_failure_that_no_rank_has_sealed_is_dropped(void **state)
{
    struct fixture *g = three_ranks();
    struct phase_msg m = failed();
    const struct ctl *t = &g->comm[0]->ctl;

    (void)state;
    say(g, &m, sizeof(m));
    seal_put(&(struct seal_key){KEY + 1, GROUP}, 1, 0, 1000, &m, sizeof(m));
    say(g, &m, sizeof(m));
    seal_put(&job, 1, 2, 1000, &m, sizeof(m)); /* for another rank */
    say(g, &m, sizeof(m));
    assert_int_equal(t->refused[CTL_FORGED], 3);
    assert_int_equal(comm_state(g->comm[0]), COMM_READY);
    seal_put(&job, 1, 0, 1000, &m, sizeof(m)); /* such a one would end it */
    say(g, &m, sizeof(m));
    assert_int_equal(comm_state(g->comm[0]), COMM_FAILED);
    fixture_free(g, true);
}

static void a_captured_message_is_dropped_when_it_is_sent_again(void **state)
{
    struct fixture *g = three_ranks();
    const struct ctl *t = &g->comm[0]->ctl;
    struct phase_msg m = failed();

    (void)state;
    assert_true(t->peer[1].got.top > 0);
    seal_put(&job, 1, 0, t->peer[1].got.top, &m, sizeof(m));
    say(g, &m, sizeof(m));
    seal_put(&job, 1, 0, 0, &m, sizeof(m));
    say(g, &m, sizeof(m));
    seal_put(&job, 77, 0, 1000, &m, sizeof(m)); /* no such rank */
    say(g, &m, sizeof(m));
    assert_int_equal(t->refused[CTL_REPEATED], 3);
    assert_int_equal(comm_state(g->comm[0]), COMM_READY);
    fixture_free(g, true);
}

static void a_rank_does_not_speak_for_a_switch(void **state)
{
    static const enum agg_type type[] = {AGG_ABORT, AGG_PROBE_REPLY, AGG_JOIN_REPLY,
                                         AGG_LEAVE_REPLY, AGG_WINDOW};
    struct fixture *g = three_ranks();
    const struct comm *c = g->comm[0];

    (void)state;
    for (unsigned i = 0; i < sizeof(type) / sizeof(type[0]); i++) {
        struct agg_ctl m = {.magic = RTE_BE32(AGG_MAGIC),
                            .version = AGG_VERSION,
                            .type = (uint8_t)type[i],
                            .status = RTE_BE16(AGG_E_MEMBER_LOST),
                            .tree = rte_cpu_to_be_16(c->agg[0].tree),
                            .group = rte_cpu_to_be_32(c->agg[0].group->id),
                            .key = RTE_BE64(KEY),
                            .xid = rte_cpu_to_be_32(c->agg[0].xid),
                            .text = "forged"};

        say(g, &m, sizeof(m));
        assert_int_equal(c->ctl.refused[CTL_STRANGER], i + 1);
        assert_int_equal(comm_state(c), COMM_READY);
        assert_int_equal(c->agg[0].state, JOIN_GRANTED);
    }
    fixture_free(g, true);
}

/* As if rank 0 had received it from this queue pair at this address. */
static void arrives(struct comm *c, uint32_t ip, uint32_t qpn, const struct agg_ctl *m)
{
    uint8_t *grh = c->ctl.port[0].mem;
    rte_be32_t from = rte_cpu_to_be_32(ip);

    memset(grh, 0, CTL_GRH);
    grh[20] = 0x45;
    memcpy(grh + 32, &from, sizeof(from));
    memcpy(grh + CTL_GRH, m, sizeof(*m));
    ctl_complete(c, &(struct ibv_wc){.wr_id = WR_ID(WR_CTL_RECV, 0, 0),
                                     .status = IBV_WC_SUCCESS,
                                     .byte_len = CTL_GRH + sizeof(*m),
                                     .src_qp = qpn});
}

static void a_switch_that_speaks_of_a_job_before_is_late_and_no_forgery(void **state)
{
    struct fixture *g = three_ranks();
    struct comm *c = g->comm[0];
    const struct fabric *f = c->cfg.fab;
    const uint32_t leaf = f->nodes[c->agg[0].leaf].ip, host = f->dests[1].ip;
    struct agg_ctl m = {.magic = RTE_BE32(AGG_MAGIC),
                        .version = AGG_VERSION,
                        .type = AGG_ABORT,
                        .status = RTE_BE16(AGG_E_MEMBER_LOST),
                        .tree = rte_cpu_to_be_16(c->agg[0].tree),
                        .group = rte_cpu_to_be_32(c->agg[0].group->id + 1),
                        .key = RTE_BE64(KEY),
                        .text = "of a job before"};

    (void)state;
    arrives(c, leaf, AGG_QPN, &m);
    assert_int_equal(c->ctl.refused[CTL_LATE], 1);
    assert_int_equal(c->ctl.refused[CTL_STRANGER], 0);
    arrives(c, leaf, AGG_QPN + 0x10000, &m);    /* another queue pair at the switch's address */
    arrives(c, host, AGG_QPN, &m);              /* the address of a host */
    arrives(c, leaf + 0x01000000, AGG_QPN, &m); /* of nobody */
    assert_int_equal(c->ctl.refused[CTL_STRANGER], 3);
    assert_int_equal(c->ctl.refused[CTL_LATE], 1);
    assert_int_equal(comm_state(c), COMM_READY);
    fixture_free(g, true);
}

/* Address and queue pair must both be the aggregation node's; then it counts. */
static void a_switch_speaks_from_its_own_address_and_queue_pair(void **state)
{
    struct fixture *g = three_ranks();
    struct comm *c = g->comm[0];
    const uint32_t leaf = c->cfg.fab->nodes[c->agg[0].leaf].ip, host = c->cfg.fab->dests[1].ip;
    struct agg_ctl m = {.magic = RTE_BE32(AGG_MAGIC),
                        .version = AGG_VERSION,
                        .type = AGG_ABORT,
                        .status = RTE_BE16(AGG_E_MEMBER_LOST),
                        .tree = rte_cpu_to_be_16(c->agg[0].tree),
                        .group = rte_cpu_to_be_32(c->agg[0].group->id),
                        .key = RTE_BE64(KEY),
                        .xid = rte_cpu_to_be_32(c->agg[0].xid),
                        .text = "said"};

    (void)state;
    arrives(c, leaf, AGG_QPN + 1, &m);
    arrives(c, host, AGG_QPN, &m);
    assert_int_equal(c->ctl.refused[CTL_STRANGER], 2);
    assert_int_equal(comm_state(c), COMM_READY);
    assert_int_equal(c->agg[0].state, JOIN_GRANTED);
    m.type = AGG_PROBE_REPLY;
    m.status = RTE_BE16(AGG_OK);
    arrives(c, leaf, AGG_QPN, &m);
    assert_int_equal(c->ctl.refused[CTL_STRANGER], 2);
    assert_int_equal(comm_state(c), COMM_READY);
    fixture_free(g, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_that_no_rank_has_sealed_is_dropped),
        cmocka_unit_test(a_captured_message_is_dropped_when_it_is_sent_again),
        cmocka_unit_test(a_rank_does_not_speak_for_a_switch),
        cmocka_unit_test(a_switch_that_speaks_of_a_job_before_is_late_and_no_forgery),
        cmocka_unit_test(a_switch_speaks_from_its_own_address_and_queue_pair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
