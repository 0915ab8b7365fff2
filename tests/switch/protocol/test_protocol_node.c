/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of protocols at a leaf and at a spine of a fabric: who may join, whose packets count, and how
 * jobs end. */
#include "tests/switch/protocol/node_fixture.h"

/* ---- JOIN ---- */

/* Two hosts of one leaf: it is the root. */
static void a_job_opens_when_all_have_joined_and_packets_reach_all(void **state)
{
    struct fixture *f = at("leaf0");

    (void)state;
    joins(f, 0, 1, 2);
    assert_int_equal(f->n, 0); /* not yet */
    joins(f, 1, 2, 2);
    assert_int_equal(f->n, 2);
    for (unsigned i = 0; i < 2; i++) {
        expect_answer(f, i, AGG_JOIN_REPLY, AGG_OK, "");
        assert_int_equal(f->out[i].ip, host_ip(i));
        assert_int_equal(f->out[i].qpn, SLOT_QPN);
        assert_int_equal(rte_be_to_cpu_16(answer(f, i)->child), i);
        assert_int_equal(rte_be_to_cpu_32(answer(f, i)->xid), 100 + i);
    }
    joins(f, 0, 1, 2); /* the answer was lost */
    assert_int_equal(f->n, 1);
    expect_answer(f, 0, AGG_JOIN_REPLY, AGG_OK, "");

    data_from(f, host_ip(1), SLOT_QPN, 1, 1, KEY, "hello");
    assert_int_equal(last.from, TRIB_CHILD(1));
    assert_int_equal(last.head_bytes, 2);
    assert_int_equal(last.data_bytes, 60);
    assert_int_equal(f->n, 2);
    assert_memory_equal(f->out[0].bytes + sizeof(struct proto_head) + 4, "hello", 6);
    data_from(f, host_ip(1), SLOT_QPN, 1, 1, KEY, "forward");
    assert_int_equal(f->n, 1);
    assert_int_equal(f->out[0].ip, 0x0a0a0a0a);
    assert_int_equal(f->out[0].qpn, 0x050001);
    assert_int_equal(f->out[0].bytes[offsetof(struct proto_head, from) + 1], 1); /* in its name */
    assert_int_equal(f->behind, 0);
    for (unsigned r = 0; r < 2; r++) {
        struct agg_ctl c = join_of(r, 2, KEY);

        c.type = AGG_LEAVE;
        control(f, host_ip(r), SLOT_QPN, &c);
        expect_answer(f, 0, AGG_LEAVE_REPLY, AGG_OK, "");
    }
    end(f);
}

/* Eight hosts of two leaves: this leaf asks the spine above, and the spine's answer opens it. */
static void a_leaf_joins_above_and_hands_the_answer_down(void **state)
{
    struct fixture *f = at("leaf0");
    uint16_t up = fab->trees[0].parent[f->node];
    struct agg_ctl grant;

    (void)state;
    joins(f, 0, 4, 8);
    assert_int_equal(f->n, 1);
    assert_int_equal(f->out[0].ip, fab->nodes[up].ip);
    assert_int_equal(f->out[0].qpn, PROTO_QPN);
    expect_answer(f, 0, AGG_JOIN, AGG_OK, "echo");
    grant = *answer(f, 0);
    assert_int_equal(rte_be_to_cpu_32(grant.member), 0);
    joins(f, 2, 3, 8); /* a member asks again: so does the leaf */
    expect_answer(f, 0, AGG_JOIN, AGG_OK, "echo");
    grant.type = AGG_JOIN_REPLY;
    grant.child = RTE_BE16(1);
    control(f, host_ip(5), SLOT_QPN, &grant); /* not the spine */
    assert_int_equal(f->n, 0);
    control(f, fab->nodes[up].ip, PROTO_QPN, &grant);
    assert_int_equal(f->n, 4);
    expect_answer(f, 3, AGG_JOIN_REPLY, AGG_OK, "");

    data_from(f, host_ip(2), SLOT_QPN, 2, 2, KEY, "up");
    assert_int_equal(f->n, 1);
    assert_int_equal(f->out[0].ip, fab->nodes[up].ip);
    data_from(f, fab->nodes[up].ip, PROTO_QPN, PROTO_FROM_SWITCH, 0, KEY, "down");
    assert_int_equal(last.from, TRIB_PARENT);
    assert_int_equal(f->n, 4);
    data_from(f, host_ip(6), SLOT_QPN, 6, 0xffff, KEY, "a rank elsewhere");
    assert_int_equal(last.from, TRIB_RANK(6));

    grant.type = AGG_ABORT;
    grant.status = RTE_BE16(AGG_E_EDGE);
    join_text(grant.text, "spine says so");
    control(f, fab->nodes[up].ip, PROTO_QPN, &grant);
    assert_int_equal(f->n, 4); /* not up again */
    expect_answer(f, 0, AGG_ABORT, AGG_E_EDGE, "spine says so");
    end(f);
}

static void a_leaf_whose_parent_has_no_link_refuses_at_once(void **state)
{
    struct fixture *f = at("leaf0");

    (void)state;
    links_down = true;
    joins(f, 0, 4, 8);
    links_down = false;
    assert_int_equal(f->n, 4);
    expect_answer(f, 0, AGG_JOIN_REPLY, AGG_E_PARENT, "spine0 has no link to leaf0");
    end(f);
}

static void joins_that_are_not_their_senders_are_refused_by_name(void **state)
{
    static const struct {
        unsigned from, rank;
        uint32_t qpn, members;
        uint64_t key;
        const char *name;
        enum agg_status status;
        const char *text;
    } rows[] = {
        {0, 1, SLOT_QPN, 2, KEY, "echo", AGG_E_NOT_MEMBER, "sender is not where member 1 joins"},
        {5, 1, SLOT_QPN, 2, KEY, "echo", AGG_E_NOT_MEMBER, "sender is not where member 1 joins"},
        {1, 1, 0x020005, 2, KEY, "echo", AGG_E_NOT_MEMBER, "QPN 0x010005 is not the sender's"},
        {1, 1, SLOT_QPN, 2, KEY, "nobody", AGG_E_NO_REDUCTION, "no protocol \"nobody\" at leaf0"},
        {1, 1, SLOT_QPN, 3, KEY, "echo", AGG_E_MISMATCH, "3 ranks of 2 members"},
        {5, 5, SLOT_QPN, 8, KEY, "echo", AGG_E_NOT_MEMBER, "sender is not where member 5 joins"},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fixture *f = at("leaf0");
        struct agg_ctl c = join_of(rows[i].rank, rows[i].members == 8 ? 8 : 2, rows[i].key);

        c.window = rte_cpu_to_be_32(rows[i].members);
        snprintf(c.name, sizeof(c.name), "%s", rows[i].name);
        control(f, host_ip(rows[i].from), rows[i].qpn, &c);
        assert_int_equal(f->n, 1);
        expect_answer(f, 0, AGG_JOIN_REPLY, rows[i].status, rows[i].text);
        end(f);
    }
}

static void packets_of_strangers_reach_no_job(void **state)
{
    struct fixture *f = at("leaf0");
    static const uint8_t garbage[300] = {PROTO_DATA, 0xff, 0xff};

    (void)state;
    joins(f, 0, 2, 2);
    data_from(f, host_ip(0), SLOT_QPN, 1, 1, KEY, "another child's");
    data_from(f, host_ip(1), 0x020005, 1, 1, KEY, "another process's");
    data_from(f, host_ip(1), SLOT_QPN, 1, 1, KEY + 1, "without the key");
    data_from(f, host_ip(1), SLOT_QPN, PROTO_FROM_SWITCH, 0xffff, KEY, "as a switch");
    data_from(f, host_ip(1), SLOT_QPN, 2, 0xffff, KEY, "of no rank");
    assert_int_equal(last.data_bytes, 0);
    for (uint32_t len = 0; len < sizeof(garbage); len++)
        datagram(f, host_ip(1), SLOT_QPN, PROTO_QPN, PROTO_QKEY, garbage, len);
    datagram(f, host_ip(1), SLOT_QPN, PROTO_QPN, AGG_QKEY, garbage, 64);
    assert_int_equal(last.data_bytes, 0);
    for (unsigned head = 1; head <= TRIB_HEAD; head++) { /* longer than its packet */
        const struct proto_head h = {
            .magic = PROTO_DATA,
            .head_bytes = (uint8_t)head,
            .from = RTE_BE16(1),
            .child = RTE_BE16(1),
            .job = RTE_BE32(9),
            .tag = rte_cpu_to_be_32(proto_tag(9, KEY, "echo", fab->trees[0].id, 0))};

        datagram(f, host_ip(1), SLOT_QPN, PROTO_QPN, PROTO_QKEY, &h, sizeof(h));
        assert_int_equal(last.head_bytes, 0);
        assert_int_equal(last.data_bytes, 0);
    }
    datagram(f, host_ip(1), SLOT_QPN, AGG_QPN, AGG_QKEY, garbage, 64);
    assert_int_equal(f->behind, 1);
    assert_false(protocol_node_idle(f->p));
    protocol_node_cut_off(f->p, f->now);
    end(f);
}

/* Two jobs that have drawn one number: their keys tell them apart, so that a packet reaches its own, and only that ends. */
static void jobs_of_one_number_are_told_apart_by_their_keys(void **state)
{
    struct fixture *f = at("leaf0");

    (void)state;
    for (unsigned k = 0; k < 2; k++)
        for (unsigned r = 0; r < 2; r++) {
            struct agg_ctl c = join_from(2 * k, r, 2, KEY + k);

            control(f, host_ip(2 * k + r), SLOT_QPN, &c);
        }
    assert_int_equal(f->n, 2);
    assert_int_equal(f->out[0].ip, host_ip(2));
    expect_answer(f, 0, AGG_JOIN_REPLY, AGG_OK, "");
    for (unsigned k = 0; k < 2; k++) {
        data_from(f, host_ip(2 * k + 1), SLOT_QPN, 1, 1, KEY + k, "hello");
        assert_int_equal(f->n, 2);
        assert_int_equal(f->out[0].ip, host_ip(2 * k));
        assert_int_equal(f->out[1].ip, host_ip(2 * k + 1));
    }
    last.data_bytes = 0;
    data_from(f, host_ip(1), SLOT_QPN, 1, 1, KEY + 1, "into the other job");
    data_from(f, host_ip(3), SLOT_QPN, 1, 1, KEY, "into the other job");
    assert_int_equal(last.data_bytes, 0);
    data_from(f, host_ip(3), SLOT_QPN, 1, 1, KEY + 1, "beyond"); /* a mistake ends its job alone */
    expect_answer(f, f->n - 1, AGG_ABORT, AGG_E_OP_UNSUPPORTED, "slot 4 of array");
    for (unsigned i = 0; i < f->n; i++)
        assert_true(f->out[i].ip == host_ip(2) || f->out[i].ip == host_ip(3));
    data_from(f, host_ip(0), SLOT_QPN, 0, 0, KEY, "hello");
    assert_int_equal(f->n, 2);
    protocol_node_cut_off(f->p, f->now);
    end(f);
}

/* ---- the end ---- */

/* The spine has restarted, or its ABORT was lost: it says so when it is asked. */
static void a_parent_that_has_forgotten_the_job_ends_it(void **state)
{
    struct fixture *f = at("leaf0");
    uint16_t up = fab->trees[0].parent[f->node];
    struct agg_ctl c;

    (void)state;
    joins(f, 0, 4, 8);
    c = *answer(f, 0);
    c.type = AGG_JOIN_REPLY;
    control(f, fab->nodes[up].ip, PROTO_QPN, &c);
    c.type = AGG_PROBE_REPLY;
    control(f, fab->nodes[up].ip, PROTO_QPN, &c);
    assert_int_equal(f->n, 0);
    c.status = RTE_BE16(AGG_E_NO_GROUP);
    control(f, host_ip(5), SLOT_QPN, &c); /* not the spine */
    assert_int_equal(f->n, 0);
    control(f, fab->nodes[up].ip, PROTO_QPN, &c);
    assert_int_equal(f->n, 4);
    expect_answer(f, 3, AGG_ABORT, AGG_E_NO_GROUP, "no longer knows the job");
    end(f);
}

/* JOIN, or what else, of a leaf below the spine that this is, for a protocol's job. */
static void leaf_says(struct fixture *f, unsigned leaf, enum agg_type type, const char *protocol)
{
    char name[16];
    unsigned node;
    struct agg_ctl c = join_of(4 * leaf, 8, KEY);

    snprintf(name, sizeof(name), "leaf%u", leaf);
    for (node = 0; strcmp(fab->nodes[node].name, name) != 0;)
        node++;
    c.type = (uint8_t)type;
    c.node = rte_cpu_to_be_16((uint16_t)node);
    c.qpn = RTE_BE32(PROTO_QPN);
    c.slot = rte_cpu_to_be_32(proto_tag(9, KEY, protocol, fab->trees[0].id, 0));
    snprintf(c.name, sizeof(c.name), "%s", protocol);
    control(f, fab->nodes[node].ip, PROTO_QPN, &c);
}

static void count_seat(void *ctx, const struct group_view *v)
{
    ((unsigned *)ctx)[v->kind - GROUP_VIEW_PROTOCOL]++;
}

/* Switches below speak of all their jobs from one queue pair. */
static void protocols_of_one_communicator_end_one_by_one(void **state)
{
    struct fixture *f = at("spine0");
    unsigned children[PROTO_SEATS] = {0};

    (void)state;
    for (unsigned leaf = 0; leaf < 2; leaf++) {
        leaf_says(f, leaf, AGG_JOIN, "echo");
        leaf_says(f, leaf, AGG_JOIN, "other");
    }
    assert_int_equal(protocol_node_jobs_of(f->p, KEY), 2);
    for (unsigned leaf = 0; leaf < 2; leaf++) {
        leaf_says(f, leaf, AGG_LEAVE, "echo");
        expect_answer(f, f->n - 1, AGG_LEAVE_REPLY, AGG_OK, "");
    }
    assert_int_equal(protocol_node_jobs_of(f->p, KEY), 1);
    protocol_node_view(f->p, count_seat, children);
    assert_int_equal(children[proto_seat("other")], 2);
    leaf_says(f, 0, AGG_PROBE, "echo");
    expect_answer(f, f->n - 1, AGG_PROBE_REPLY, AGG_E_NO_GROUP, "");
    leaf_says(f, 0, AGG_PROBE, "other");
    expect_answer(f, f->n - 1, AGG_PROBE_REPLY, AGG_OK, "");
    for (unsigned leaf = 0; leaf < 2; leaf++)
        leaf_says(f, leaf, AGG_LEAVE, "other");
    end(f);
}

/* Ranks that have given a job up join it again, before all have left it. */
static void a_job_that_is_joined_again_ends_the_attempt_before(void **state)
{
    struct fixture *f = at("leaf0");
    struct agg_ctl c;

    (void)state;
    joins(f, 0, 2, 2);
    for (unsigned r = 0; r < 2; r++) {
        c = join_of(r, 2, KEY);
        c.attempt = RTE_BE16(1);
        c.slot = rte_cpu_to_be_32(proto_tag(9, KEY, "echo", fab->trees[0].id, 1));
        control(f, host_ip(r), SLOT_QPN, &c);
        assert_int_equal(f->n, 2); /* the ABORTs of the one before, then the grants */
        expect_answer(f, 1, r ? AGG_JOIN_REPLY : AGG_ABORT, r ? AGG_OK : AGG_E_DUPLICATE, "");
        assert_int_equal(protocol_node_jobs_of(f->p, KEY), 1);
    }
    joins(f, 0, 1, 2); /* a repetition that is late */
    expect_answer(f, 0, AGG_JOIN_REPLY, AGG_E_DUPLICATE, "the job is joined again");
    assert_int_equal(protocol_node_jobs_of(f->p, KEY), 1);
    for (unsigned r = 0; r < 2; r++) {
        c.type = AGG_LEAVE;
        c.member = rte_cpu_to_be_32(r);
        control(f, host_ip(r), SLOT_QPN, &c);
        expect_answer(f, 0, AGG_LEAVE_REPLY, AGG_OK, "");
    }
    end(f);
}

static void a_process_that_ends_takes_its_jobs_with_it(void **state)
{
    struct fixture *f = at("leaf0");
    struct agg_ctl c = {.magic = RTE_BE32(AGG_MAGIC),
                        .version = AGG_VERSION,
                        .type = AGG_PEER_DOWN,
                        .qpn = RTE_BE32(1 << 16),
                        .node = RTE_BE16(0xffff)};

    (void)state;
    joins(f, 0, 2, 2);
    datagram(f, host_ip(1), SLOT_QPN, AGG_QPN, AGG_QKEY, &c, sizeof(c)); /* not the NIC */
    c.qpn = RTE_BE32(2 << 16);
    datagram(f, host_ip(1), AGG_NIC_QPN, AGG_QPN, AGG_QKEY, &c, sizeof(c)); /* another slot */
    assert_int_equal(f->n, 0);
    c.qpn = RTE_BE32(1 << 16);
    datagram(f, host_ip(1), AGG_NIC_QPN, AGG_QPN, AGG_QKEY, &c, sizeof(c));
    assert_int_equal(f->n, 1);
    assert_int_equal(f->out[0].ip, host_ip(0));
    expect_answer(f, 0, AGG_ABORT, AGG_E_MEMBER_LOST, "rank 1 (h1) is gone");
    assert_int_equal(f->behind, 3); /* the aggregation node gets all three */
    end(f);
}

static void silence_and_missing_members_end_a_job_by_name(void **state)
{
    struct fixture *f = at("leaf0");

    (void)state;
    joins(f, 0, 2, 2);
    for (unsigned i = 0; i < 40; i++) { /* host 0 speaks, host 1 does not */
        struct agg_ctl c = join_of(0, 2, KEY);

        f->now += PS_PER_S / 4;
        c.type = AGG_PROBE;
        control(f, host_ip(0), SLOT_QPN, &c);
        f->n = 0;
        f->ep.tick(f->ep.ctx, f->now);
        drain(f);
        if (f->n)
            break;
    }
    expect_answer(f, 0, AGG_ABORT, AGG_E_MEMBER_LOST, "leaf0: h1 is silent");
    assert_true(protocol_node_idle(f->p));
    joins(f, 0, 1, 2);
    for (unsigned i = 0; i < 200 && !protocol_node_idle(f->p); i++) {
        f->n = 0;
        f->now += PS_PER_S;
        f->ep.tick(f->ep.ctx, f->now);
        drain(f);
    }
    expect_answer(f, 0, AGG_ABORT, AGG_E_MEMBER_LOST, "leaf0: h1 has not joined");
    end(f);
}

static void a_protocols_mistake_ends_its_job_and_no_other(void **state)
{
    struct fixture *f = at("leaf0");

    (void)state;
    joins(f, 0, 2, 2);
    data_from(f, host_ip(1), SLOT_QPN, 1, 1, KEY, "kept");
    assert_false(protocol_node_idle(f->p));
    data_from(f, host_ip(1), SLOT_QPN, 1, 1, KEY, "beyond");
    assert_true(f->n >= 2);
    expect_answer(f, f->n - 1, AGG_ABORT, AGG_E_OP_UNSUPPORTED, "protocol echo: slot 4 of array");
    end(f); /* the slot that it kept is back */
}

static void a_host_founds_no_more_than_its_share(void **state)
{
    struct fixture *f = at("leaf0");
    const struct fab_reduce *r = &fab->nodes[f->node].reduce;
    unsigned founded = 0;

    (void)state;
    for (unsigned i = 0; i < r->max_groups; i++) {
        struct agg_ctl c = join_of(0, 2, KEY + i);

        c.group = rte_cpu_to_be_32(100 + i);
        control(f, host_ip(0), SLOT_QPN, &c);
        if (f->n)
            expect_answer(f, 0, AGG_JOIN_REPLY, AGG_E_QUOTA_HOST, "h0 has ");
        founded += !f->n;
    }
    assert_int_equal(founded, r->max_groups * r->host_permille / 1000);
    for (unsigned i = founded; i < r->max_groups; i++) { /* they are none of the other host's */
        struct agg_ctl c = join_of(1, 2, KEY + 1000 + i);

        c.group = rte_cpu_to_be_32(1000 + i);
        control(f, host_ip(1), SLOT_QPN, &c);
        assert_int_equal(f->n, 0);
    }
    joins(f, 0, 2, 2); /* of a job that another host founds, too */
    protocol_node_cut_off(f->p, f->now);
    end(f);
}

static int set_up(void **state)
{
    static struct trib_protocol other;
    char err[PROTO_TEXT];

    (void)state;
    other = echo;
    other.name = "other";
    test_eal_init();
    fab = fabric_load("conf/leaf-spine-8.conf", NULL);
    pool = test_pool(1023);
    return fab && pool && proto_add(&echo, err) >= 0 && proto_add(&other, err) >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fabric_free(fab);
    rte_mempool_free(pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_opens_when_all_have_joined_and_packets_reach_all),
        cmocka_unit_test(a_leaf_joins_above_and_hands_the_answer_down),
        cmocka_unit_test(a_leaf_whose_parent_has_no_link_refuses_at_once),
        cmocka_unit_test(joins_that_are_not_their_senders_are_refused_by_name),
        cmocka_unit_test(packets_of_strangers_reach_no_job),
        cmocka_unit_test(jobs_of_one_number_are_told_apart_by_their_keys),
        cmocka_unit_test(a_parent_that_has_forgotten_the_job_ends_it),
        cmocka_unit_test(protocols_of_one_communicator_end_one_by_one),
        cmocka_unit_test(a_job_that_is_joined_again_ends_the_attempt_before),
        cmocka_unit_test(a_process_that_ends_takes_its_jobs_with_it),
        cmocka_unit_test(silence_and_missing_members_end_a_job_by_name),
        cmocka_unit_test(a_protocols_mistake_ends_its_job_and_no_other),
        cmocka_unit_test(a_host_founds_no_more_than_its_share),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
