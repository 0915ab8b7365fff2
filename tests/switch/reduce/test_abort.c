/* SPDX-License-Identifier: BSD-3-Clause */
/* What ends a group before its members do: an abort on all of them that names who, where and why,
 * and nothing left behind. */
#include "tests/switch/reduce/control.h"

static struct member *six_joined(struct agg_fixture **b, uint64_t seed, unsigned loss)
{
    *b = agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = seed, .loss = loss});
    return joined(*b, six, LEN(six));
}

/* All members that are still there end with this status and these words, and the ANs are empty. */
static void expect_abort(struct agg_fixture *b, enum agg_status why, const char *words)
{
    if (!agg_fixture_run(b, agg_fixture_all_aborted, 1000 * PS_PER_MS))
        fail_msg("not all are aborted");
    for (unsigned i = 0; i < b->n; i++) {
        const struct member *m = &b->member[i];

        if (!m->deaf && (m->status != why || !strstr(m->text, words)))
            fail_msg("member %u: %s \"%s\"; expected %s \"%s\"", m->id, agg_status_name(m->status),
                     m->text, agg_status_name(why), words);
    }
    agg_fixture_settle(b, 10 * PS_PER_MS);
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        if (b->an[i] && !b->an_dead[i])
            assert_true(an_idle(b->an[i]));
}

/* ---- members that disagree ---- */

static const struct {
    const char *field;
    struct agg_fixture_op odd;
    enum agg_status why;
    const char *words;
} odds[] = {
    {"type",
     {AGG_ALLREDUCE, DT_FP16, OP_SUM, 0, 0, 40000, false, NULL, NULL},
     AGG_E_OP_MISMATCH,
     "type: "},
    {"operation",
     {AGG_ALLREDUCE, DT_FP32, OP_MAX, 0, 0, 40000, false, NULL, NULL},
     AGG_E_OP_MISMATCH,
     "operation: "},
    {"size",
     {AGG_ALLREDUCE, DT_FP32, OP_SUM, 0, 0, 40004, false, NULL, NULL},
     AGG_E_OP_MISMATCH,
     "size: "},
    {"size of one packet",
     {AGG_ALLREDUCE, DT_FP32, OP_SUM, 0, 0, 4, false, NULL, NULL},
     AGG_E_OP_MISMATCH,
     "size: "},
    {"number",
     {AGG_ALLREDUCE, DT_FP32, OP_SUM, 0, 3, 40000, false, NULL, NULL},
     AGG_E_OP_MISMATCH,
     "operation number: "},
    {"collective",
     {AGG_BARRIER, DT_FP32, OP_SUM, 0, 0, 0, false, NULL, NULL},
     AGG_E_OP_MISMATCH,
     "collective: "},
    {"unknown type",
     {AGG_ALLREDUCE, DT_FP32, OP_COUNT, 0, 0, 40000, false, NULL, NULL},
     AGG_E_OP_UNSUPPORTED,
     "at leaf0: operation"},
    {"other collective",
     {9, DT_FP32, OP_SUM, 0, 0, 40000, false, NULL, NULL},
     AGG_E_OP_UNSUPPORTED,
     "at leaf0: collective"},
};

static void members_that_disagree_are_all_aborted_with_ranks_and_field_named(void **state)
{
    (void)state;
    for (unsigned o = 0; o < LEN(odds); o++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct agg_fixture *b;
            struct member *m = six_joined(&b, seed * 10 + o, 0);
            char words[64];

            for (unsigned i = 0; i < LEN(six); i++)
                start(&m[i], i == 1 ? odds[o].odd : floats(40000));
            snprintf(words, sizeof(words), "%s", odds[o].words);
            expect_abort(b, odds[o].why, words);
            assert_non_null(strstr(m[0].text, "rank 1 (h1)"));
            agg_fixture_destroy(b);
        }
}

static void a_disagreement_between_leaves_names_a_rank_of_each(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 3, 0);

    (void)state;
    for (unsigned i = 0; i < LEN(six); i++)
        start(&m[i], i < 3 ? floats(40000)
                           : (struct agg_fixture_op){
                                 .coll = AGG_ALLREDUCE, .dtype = DT_INT32, .total = 40000});
    expect_abort(b, AGG_E_OP_MISMATCH, "rank 0 (h0) and rank 3 (h4): type: float, int32");
    agg_fixture_destroy(b);
}

/* ---- members that break the rules ---- */

static void a_member_that_sends_beyond_its_window_is_named(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 4, 0);

    (void)state;
    m[2].over_window = true;
    m[0].frozen = true;
    for (unsigned i = 0; i < LEN(six); i++)
        start(&m[i], floats(40000));
    expect_abort(b, AGG_E_PROTOCOL, "rank 2 (h2) at leaf0: sent beyond its window");
    agg_fixture_destroy(b);
}

static const struct {
    const char *name;
    size_t at;
    uint8_t value;
    const char *words;
} bad_headers[] = {
    {"version", offsetof(struct agg_hdr, version), 9, "version"},
    {"a result", offsetof(struct agg_hdr, type), AGG_RESULT, "type"},
    {"offset", offsetof(struct agg_hdr, offset) + 7, 4, "offset"},
    {"message length", offsetof(struct agg_hdr, msg_len) + 3, 17, "message length"},
    {"total", offsetof(struct agg_hdr, total) + 7, 0x41, "total"},
};

static void a_malformed_message_is_named_by_rank_and_field(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LEN(bad_headers); i++) {
        struct agg_fixture *b;
        struct member *m = six_joined(&b, 20 + i, 0);

        for (unsigned k = 0; k < LEN(six); k++)
            start(&m[k], floats(40000));
        ((uint8_t *)&m[4].hdr[0])[bad_headers[i].at] = bad_headers[i].value;
        expect_abort(b, AGG_E_PROTOCOL, "rank 4 (h5) at leaf1: ");
        if (!strstr(m[0].text, bad_headers[i].words))
            fail_msg("%s: \"%s\"", bad_headers[i].name, m[0].text);
        agg_fixture_destroy(b);
    }
}

/* The second message starts where the third should. */
static void messages_out_of_order_are_refused(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 30, 0);

    (void)state;
    for (unsigned k = 0; k < LEN(six); k++)
        start(&m[k], floats(40000));
    m[4].hdr[1].offset = m[4].hdr[2].offset;
    expect_abort(b, AGG_E_PROTOCOL, "order of messages");
    agg_fixture_destroy(b);
}

static void packets_that_do_not_fill_the_mtu_are_refused(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 31, 0);
    struct wqe w = {.op = WR_SEND, .frag = WQE_WHOLE, .n_sge = 1};

    (void)state;
    for (unsigned k = 0; k < LEN(six); k++) {
        start(&m[k], floats(40000));
        m[k].frozen = k == 0;
    }
    w.sge[0] =
        (struct sge){(uintptr_t)m[0].hdr, AGG_HDR_BYTES, 0}; /* header says 8160 bytes, but none
                                                                follow */
    assert_int_equal(qp_post_send(m[0].qp, &w), 0);
    expect_abort(b, AGG_E_PROTOCOL, "rank 0 (h0) at leaf0: packet length");
    agg_fixture_destroy(b);
}

/* ---- members that go ---- */

static void a_killed_member_is_named_with_its_slot_on_all_others(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct agg_fixture *b;
        struct member *m = six_joined(&b, seed, 0);

        for (unsigned i = 0; i < LEN(six); i++)
            start(&m[i], floats(400000));
        agg_fixture_settle(b, (int64_t)(seed * 40) * PS_PER_US);
        agg_fixture_kill(&m[3], true);
        expect_abort(b, AGG_E_MEMBER_LOST, "rank 3 (h4) missing at leaf1, slot ");
        agg_fixture_destroy(b);
    }
}

static void a_member_killed_while_joining_is_named_too(void **state)
{
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 5});
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, LEN(six));

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        agg_fixture_join(&m[i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 100 * PS_PER_MS));
    agg_fixture_kill(&m[3], true);
    m[4].deaf = m[5].deaf = true; /* they never come */
    expect_abort(b, AGG_E_MEMBER_LOST, "rank 3 (h4) missing at leaf1");
    agg_fixture_destroy(b);
}

/* A rank that comes after the abort must not wait for the others for ever. */
static void who_joins_after_the_abort_is_refused_with_its_reason(void **state)
{
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 6});
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, LEN(six));

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        agg_fixture_join(&m[i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 100 * PS_PER_MS));
    agg_fixture_kill(&m[3], true);
    agg_fixture_settle(b, PS_PER_MS);
    agg_fixture_join(&m[5]);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 100 * PS_PER_MS));
    assert_int_equal(m[5].state, MEMBER_REFUSED);
    assert_int_equal(m[5].status, AGG_E_MEMBER_LOST);
    assert_non_null(strstr(m[5].text, "rank 3 (h4)"));
    m[5].deaf = true;
    agg_fixture_destroy(b);
}

static void processes_of_another_slot_of_the_host_are_not_taken_for_dead(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 7, 0);

    (void)state;
    agg_fixture_peer_down(&m[3], 0x050000);
    agg_fixture_settle(b, 5 * PS_PER_MS);
    for (unsigned i = 0; i < LEN(six); i++)
        assert_int_equal(m[i].state, MEMBER_IN);
    assert_int_equal(an_counters(an_of(b, "leaf1"))->peers_down, 1);
    agg_fixture_destroy(b);
}

/* Processes of all hosts have the same slots: a NIC speaks of its own host's. */
static void processes_of_another_host_are_not_taken_for_dead(void **state)
{
    static const unsigned other[] = {7};
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 8, 0);
    struct member *k = agg_fixture_group(b, 0, 8, 1024, 16, 1, other, LEN(other));

    (void)state;
    for (unsigned i = 0; i < LEN(six); i++)
        assert_int_not_equal(m[i].host, k->host);
    agg_fixture_peer_down(k, (k->slot + 1u) << 16);
    agg_fixture_settle(b, 5 * PS_PER_MS);
    for (unsigned i = 0; i < LEN(six); i++)
        assert_int_equal(m[i].state, MEMBER_IN);
    k->deaf = true;
    agg_fixture_destroy(b);
}

static void a_process_cannot_say_in_a_nics_name_that_another_is_gone(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 17, 0);
    struct agg_ctl c = {.qpn = rte_cpu_to_be_32((m[3].slot + 1u) << 16)};

    (void)state;
    agg_fixture_say(&m[3], AGG_PEER_DOWN, &c);
    agg_fixture_fill_join(&m[3], &c);
    agg_fixture_say(&m[3], AGG_ABORT, &c); /* nor in an aggregation node's */
    agg_fixture_settle(b, 5 * PS_PER_MS);
    for (unsigned i = 0; i < LEN(six); i++)
        assert_int_equal(m[i].state, MEMBER_IN);
    assert_int_equal(an_counters(an_of(b, "leaf1"))->peers_down, 0);
    assert_int_equal(an_counters(an_of(b, "leaf1"))->control_forged, 2);
    agg_fixture_destroy(b);
}

static void a_member_that_falls_silent_is_found_by_its_connection(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 8, 0);

    (void)state;
    for (unsigned i = 0; i < LEN(six); i++)
        start(&m[i], floats(400000));
    agg_fixture_settle(b, 60 * PS_PER_US);
    agg_fixture_kill(&m[5], false); /* not announced */
    expect_abort(b, AGG_E_EDGE, "leaf1 to rank 5 (h6): no answer");
    agg_fixture_destroy(b);
}

static void a_fabric_in_real_time_is_patient_with_a_silent_member(void **state)
{
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = "dilation = 1;\n" LEAVES, .seed = 8});
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, LEN(six));

    (void)state;
    for (unsigned i = 0; i < LEN(six); i++)
        agg_fixture_join(&m[i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 400 * PS_PER_MS));
    for (unsigned i = 0; i < LEN(six); i++)
        start(&m[i], floats(400000));
    agg_fixture_settle(b, 60 * PS_PER_US);
    agg_fixture_kill(&m[5], false);
    assert_false(agg_fixture_run(b, agg_fixture_all_aborted, 1000 * PS_PER_MS));
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(m[i].state, MEMBER_IN);
    assert_true(agg_fixture_run(b, agg_fixture_all_aborted, 8000 * PS_PER_MS));
    expect_abort(b, AGG_E_EDGE, "leaf1 to rank 5 (h6): no answer");
    agg_fixture_destroy(b);
}

static void leaving_in_mid_operation_aborts_the_others_by_name(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 9, 0);

    (void)state;
    for (unsigned i = 0; i < LEN(six); i++)
        start(&m[i], floats(400000));
    agg_fixture_settle(b, 100 * PS_PER_US);
    agg_fixture_leave(&m[1]);
    assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
    assert_int_equal(m[1].state, MEMBER_LEFT);
    m[1].deaf = true;
    expect_abort(b, AGG_E_MEMBER_LEFT, "rank 1 (h1) left leaf0, slot ");
    agg_fixture_destroy(b);
}

static void starting_without_a_member_that_has_left_aborts_by_name(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 10, 0);

    (void)state;
    agg_fixture_leave(&m[1]);
    assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
    m[1].deaf = true;
    for (unsigned i = 0; i < LEN(six); i++)
        start(&m[i], floats(4000));
    expect_abort(b, AGG_E_MEMBER_LEFT, "rank 1 (h1) left leaf0");
    agg_fixture_destroy(b);
}

static void leaving_between_operations_disturbs_nobody(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 11, 0);

    (void)state;
    for (unsigned i = 0; i < LEN(six); i++)
        start(&m[i], floats(40000));
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    agg_fixture_leave(&m[1]);
    agg_fixture_leave(&m[4]);
    assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
    agg_fixture_settle(b, 100 * PS_PER_MS);
    for (unsigned i = 0; i < LEN(six); i++)
        assert_int_equal(m[i].state, i == 1 || i == 4 ? MEMBER_LEFT : MEMBER_IN);
    agg_fixture_destroy(b);
}

/* ---- switches that go ---- */

static void a_parent_that_is_gone_is_named_below(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 12, 0);
    uint16_t root = b->f->trees[0].root;

    (void)state;
    for (unsigned i = 0; i < LEN(six); i++)
        start(&m[i], floats(400000));
    agg_fixture_settle(b, 60 * PS_PER_US);
    b->an_dead[root] = true;
    an_peer_down(an_of(b, "leaf0"), root, b->now);
    an_peer_down(an_of(b, "leaf1"), root, b->now);
    expect_abort(b, AGG_E_PARENT, "spine0 missing at leaf");
    agg_fixture_destroy(b);
}

static void a_leaf_that_is_gone_is_named_at_the_other_leaves(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 13, 0);
    uint16_t leaf = fabric_node_index(b->f, fabric_node(b->f, "leaf1"));

    (void)state;
    b->an_dead[leaf] = true;
    an_peer_down(an_of(b, "spine0"), leaf, b->now);
    for (unsigned i = 3; i < 6; i++)
        m[i].deaf = true;
    expect_abort(b, AGG_E_EDGE, "leaf1 missing at spine0");
    agg_fixture_destroy(b);
}

static void a_hosts_link_that_is_down_is_its_members_end(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 14, 0);

    (void)state;
    an_peer_down(an_of(b, "leaf0"), m[2].host, b->now);
    m[2].deaf = true;
    expect_abort(b, AGG_E_MEMBER_LOST, "rank 2 (h2) missing at leaf0");
    agg_fixture_destroy(b);
}

static void who_has_lost_every_link_blames_nobody(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 16, 0);

    (void)state;
    start(&m[0], floats(400000));
    agg_fixture_settle(b, 20 * PS_PER_US);
    an_cut_off(an_of(b, "leaf1"), b->now);
    expect_abort(b, AGG_E_EDGE, "leaf1 has lost all its links");
    agg_fixture_destroy(b);
}

/* ---- the message itself ---- */

static void aborts_reach_everybody_when_frames_are_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct agg_fixture *b;
        struct member *m = six_joined(&b, 40 + seed, 2500);

        start(&m[0], floats(4000));
        agg_fixture_leave(&m[0]);
        agg_fixture_settle(b, 20 * PS_PER_MS);
        m[0].deaf = true;
        start(&m[1], floats(4000));
        expect_abort(b, AGG_E_MEMBER_LEFT, "rank 0 (h0)");
        agg_fixture_destroy(b);
    }
}

static void an_abort_is_repeated_until_answered_and_not_for_ever(void **state)
{
    struct agg_fixture *b;
    struct member *m = six_joined(&b, 15, 0);

    (void)state;
    m[0].mute_acks = true;
    agg_fixture_kill(&m[3], true);
    expect_abort(b, AGG_E_MEMBER_LOST, "rank 3");
    agg_fixture_settle(b, 500 * PS_PER_MS);
    assert_int_equal(m[0].aborts, 16);
    assert_int_equal(m[1].aborts, 1);
    assert_int_equal(an_counters(an_of(b, "leaf0"))->aborts_unanswered, 1);
    agg_fixture_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_disagree_are_all_aborted_with_ranks_and_field_named),
        cmocka_unit_test(a_disagreement_between_leaves_names_a_rank_of_each),
        cmocka_unit_test(a_member_that_sends_beyond_its_window_is_named),
        cmocka_unit_test(a_malformed_message_is_named_by_rank_and_field),
        cmocka_unit_test(messages_out_of_order_are_refused),
        cmocka_unit_test(packets_that_do_not_fill_the_mtu_are_refused),
        cmocka_unit_test(a_killed_member_is_named_with_its_slot_on_all_others),
        cmocka_unit_test(a_member_killed_while_joining_is_named_too),
        cmocka_unit_test(who_joins_after_the_abort_is_refused_with_its_reason),
        cmocka_unit_test(processes_of_another_slot_of_the_host_are_not_taken_for_dead),
        cmocka_unit_test(processes_of_another_host_are_not_taken_for_dead),
        cmocka_unit_test(a_process_cannot_say_in_a_nics_name_that_another_is_gone),
        cmocka_unit_test(a_member_that_falls_silent_is_found_by_its_connection),
        cmocka_unit_test(a_fabric_in_real_time_is_patient_with_a_silent_member),
        cmocka_unit_test(leaving_in_mid_operation_aborts_the_others_by_name),
        cmocka_unit_test(starting_without_a_member_that_has_left_aborts_by_name),
        cmocka_unit_test(leaving_between_operations_disturbs_nobody),
        cmocka_unit_test(a_parent_that_is_gone_is_named_below),
        cmocka_unit_test(a_leaf_that_is_gone_is_named_at_the_other_leaves),
        cmocka_unit_test(a_hosts_link_that_is_down_is_its_members_end),
        cmocka_unit_test(who_has_lost_every_link_blames_nobody),
        cmocka_unit_test(aborts_reach_everybody_when_frames_are_lost),
        cmocka_unit_test(an_abort_is_repeated_until_answered_and_not_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
