/* SPDX-License-Identifier: BSD-3-Clause */
/* Multimem groups: refusals by name, and aborts of the other members when one is gone. */
#include "tests/support/mm_fixture.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS PS_PER_MS
#define CONF(n)                                                                                    \
    "mtu = 1024; slots_per_host = 1; single_switch = { hosts = " #n                                \
    "; host_link = { rate = \"125GB/s\"; latency = \"100ns\"; }; };\n"

static void open_fixture(struct mm_fixture *b, unsigned n)
{
    mm_fixture_open(
        b, &(struct mm_fixture_cfg){.conf = CONF(8), .n = n, .length = 1 << 20, .seed = 3});
}

static void expect_text(const struct mm_ctl *c, enum agg_status st, const char *text)
{
    if (rte_be_to_cpu_16(c->status) != st)
        fail_msg("%s instead of %s", agg_status_name(rte_be_to_cpu_16(c->status)),
                 agg_status_name(st));
    if (!strstr(c->text, text))
        fail_msg("\"%s\" does not say \"%s\"", c->text, text);
}

/* ---- BIND ---- */

static void bind_says(struct mm_fixture *b, unsigned i, struct mm_ctl *c, enum agg_status st,
                      const char *text)
{
    unsigned before = b->m[i].n_got[AGG_MM_BIND_REPLY];

    mm_fixture_say(&b->m[i], AGG_MM_BIND, c);
    mm_fixture_pass(b, MS);
    assert_int_equal(b->m[i].n_got[AGG_MM_BIND_REPLY], before + 1);
    expect_text(&b->m[i].got[AGG_MM_BIND_REPLY], st, text);
}

static void a_bind_that_is_wrong_is_refused_by_name(void **state)
{
    struct mm_fixture b;
    struct mm_ctl c;

    (void)state;
    open_fixture(&b, 4);
    c = mm_fixture_bind_of(&b.m[0]);
    c.members = RTE_BE16(129);
    bind_says(&b, 0, &c, AGG_E_CHILDREN, "129 members, at most 128");
    c = mm_fixture_bind_of(&b.m[0]);
    c.member = RTE_BE16(4);
    bind_says(&b, 0, &c, AGG_E_NOT_MEMBER, "member 4 of 4");
    c = mm_fixture_bind_of(&b.m[0]);
    c.mtu = RTE_BE16(4096);
    bind_says(&b, 0, &c, AGG_E_MTU, "MTU 4096, the fabric's is 1024");
    c = mm_fixture_bind_of(&b.m[0]);
    c.area = 4;
    bind_says(&b, 0, &c, AGG_E_REGION, "area 4 of 4");
    c = mm_fixture_bind_of(&b.m[0]);
    c.length = rte_cpu_to_be_64(1ULL << 40);
    bind_says(&b, 0, &c, AGG_E_REGION, "1099511627776 bytes, area 0");
    c = mm_fixture_bind_of(&b.m[0]);
    c.reads = 0;
    bind_says(&b, 0, &c, AGG_E_REGION, "no READs");
    assert_true(an_idle(b.an));

    c = mm_fixture_bind_of(&b.m[0]);
    bind_says(&b, 0, &c, AGG_OK, "");
    c = mm_fixture_bind_of(&b.m[1]);
    c.qpn = rte_cpu_to_be_32(qp_num(b.m[1].qp) + (1 << 16));
    bind_says(&b, 1, &c, AGG_E_NOT_MEMBER, "is not of the sender's process");
    c = mm_fixture_bind_of(&b.m[1]);
    c.members = RTE_BE16(5);
    bind_says(&b, 1, &c, AGG_E_MISMATCH, "5 members, the group has 4");
    c = mm_fixture_bind_of(&b.m[1]);
    c.mtu = RTE_BE16(512);
    bind_says(&b, 1, &c, AGG_E_MTU, "MTU 512, the group's is 1024");
    c = mm_fixture_bind_of(&b.m[1]);
    c.member = RTE_BE16(0);
    bind_says(&b, 1, &c, AGG_E_DUPLICATE, "member 0 is bound already");
    assert_int_equal(mm_fixture_counters(&b)->mm_binds_refused, 10);
    assert_int_equal(mm_fixture_counters(&b)->mm_binds, 1);
    mm_fixture_close(&b);
}

static void quotas_refuse_a_bind_and_name_what_is_left(void **state)
{
    static const struct {
        struct mm_cfg mm;
        enum agg_status st;
        const char *text;
    } rows[] = {
        {{.max_groups = 1}, AGG_E_QUOTA_GROUPS, "has 1 groups, at most 1"},
        {{.max_bytes = 3 << 20}, AGG_E_QUOTA_BUFFERS, "of 3145728 bytes left, 2097152 needed"},
        {{.max_mbufs = 3000}, AGG_E_QUOTA_BUFFERS, "of 3000 frames left, 2048 needed"},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct mm_fixture b;
        struct mm_ctl c;

        mm_fixture_open(
            &b, &(struct mm_fixture_cfg){
                    .conf = CONF(8), .n = 4, .length = 1 << 20, .seed = 3, .mm = rows[r].mm});
        c = mm_fixture_bind_of(&b.m[0]);
        bind_says(&b, 0, &c, AGG_OK, "");
        assert_int_equal(mm_fixture_counters(&b)->mm_bytes, 2 << 20);
        assert_int_equal(mm_fixture_counters(&b)->mm_mbufs, 2048);
        c = mm_fixture_bind_of(&b.m[1]);
        c.group = RTE_BE32(8);
        bind_says(&b, 1, &c, rows[r].st, rows[r].text);
        mm_fixture_close(&b);
    }
}

static void a_repeated_bind_gets_the_same_answer(void **state)
{
    struct mm_fixture b;
    struct mm_ctl c, first;

    (void)state;
    open_fixture(&b, 2);
    c = mm_fixture_bind_of(&b.m[0]);
    bind_says(&b, 0, &c, AGG_OK, "");
    first = b.m[0].got[AGG_MM_BIND_REPLY];
    bind_says(&b, 0, &c, AGG_OK, "");
    assert_memory_equal(&first, &b.m[0].got[AGG_MM_BIND_REPLY], sizeof(first));
    assert_int_equal(mm_fixture_counters(&b)->mm_binds, 1);
    c = mm_fixture_bind_of(&b.m[0]);
    mm_fixture_say(&b.m[0], AGG_MM_UNBIND, &c);
    mm_fixture_say(&b.m[0], AGG_MM_BIND, &c); /* late: the group does not come back */
    mm_fixture_pass(&b, 100 * PS_PER_US);
    assert_int_equal(b.m[0].n_got[AGG_MM_BIND_REPLY], 2);
    assert_true(an_idle(b.an));
    mm_fixture_close(&b);
}

/* The answer may have been lost. */
static void a_repeated_ready_is_answered_again(void **state)
{
    struct mm_fixture b;
    struct mm_ctl c;

    (void)state;
    open_fixture(&b, 2);
    mm_fixture_bind_all(&b);
    for (unsigned i = 0; i < 3; i++) {
        unsigned before = b.m[i % 2].n_got[AGG_MM_READY_REPLY];

        c = mm_fixture_bind_of(&b.m[i % 2]);
        mm_fixture_say(&b.m[i % 2], AGG_MM_READY, &c);
        mm_fixture_pass(&b, 100 * PS_PER_US);
        assert_int_equal(b.m[i % 2].n_got[AGG_MM_READY_REPLY], before + 1);
    }
    mm_fixture_close(&b);
}

static void a_switch_without_multimem_says_so(void **state)
{
    struct mm_fixture b;
    struct an *plain, *with;
    struct endpoint ep;
    struct mm_ctl c;

    (void)state;
    open_fixture(&b, 2);
    with = b.an;
    assert_int_equal(
        an_create(
            &plain,
            &(struct an_cfg){.fab = b.fx.f, .node = b.sw, .pool = b.fx.pool, .mbuf_budget = 1000}),
        0);
    ep = an_endpoint(plain);
    assert_int_equal(net_attach(b.fx.net, b.sw, 0, 0, &ep), 0);
    c = mm_fixture_bind_of(&b.m[0]);
    bind_says(&b, 0, &c, AGG_E_NO_MULTIMEM, "no multimem");
    ep = an_endpoint(with);
    assert_int_equal(net_attach(b.fx.net, b.sw, 0, 0, &ep), 0);
    an_destroy(plain);
    mm_fixture_close(&b);
}

/* ---- access ---- */

static struct wqe load_of(struct mm_fixture_member *m, uint64_t va, uint32_t rkey, uint32_t len)
{
    struct wqe w = {.op = WR_READ, .frag = WQE_WHOLE, .n_sge = 1, .raddr = va, .rkey = rkey};

    w.sge[0] = (struct sge){(uintptr_t)m->local, len, MM_FIXTURE_LKEY};
    return w;
}

static void wrong_keys_and_addresses_are_refused_and_counted(void **state)
{
    static const struct {
        enum wr_op op;
        struct mm_what w;
        uint64_t base;
        uint32_t key, len; /* key: added to the right one */
        bool bad_key;
    } rows[] = {
        {WR_READ, {.dtype = DT_FP32}, MM_BASE, 1, 4096, true},
        {WR_WRITE, {0}, MM_BASE, 1, 4096, true},
        {WR_READ, {.dtype = DT_FP32, .off = 1 << 20}, MM_BASE, 0, 4, false},
        {WR_READ, {.dtype = DT_FP32, .off = 4096}, MM_BASE, 0, 1 << 20, false},
        {WR_WRITE, {.off = 4096}, MM_BASE, 0, 1 << 20, false},
        {WR_READ, {.dtype = DT_FP32}, 0, 0, 4, false},
        {WR_WRITE, {0}, MM_BASE << 1, 0, 4, false},
        {WR_WRITE, {.area = 1}, MM_BASE, 0, 4, false}, /* no member has bound memory to it */
        {WR_READ, {.dtype = 99}, MM_BASE, 0, 4, false},
        {WR_READ, {.op = 15}, MM_BASE, 0, 4, false},
        {WR_READ, {.dtype = DT_FP32, .off = 2}, MM_BASE, 0, 4, false},
        {WR_READ, {.dtype = DT_FP32}, MM_BASE, 0, 6, false},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct mm_fixture b;
        struct wqe w;

        open_fixture(&b, 3);
        mm_fixture_bind_all(&b);
        w = load_of(&b.m[1], mm_addr(rows[r].base, &rows[r].w),
                    rte_be_to_cpu_32(b.m[1].got[AGG_MM_BIND_REPLY].rkey) + rows[r].key,
                    rows[r].len);
        w.op = (uint8_t)rows[r].op;
        mm_fixture_post(&b.m[1], &w);
        mm_fixture_pass(&b, MS);
        if (b.m[1].n_cqes != 1 || b.m[1].cqe[0].status != WC_REM_ACCESS_ERR)
            fail_msg("row %u: %u completions, status %u", r, b.m[1].n_cqes, b.m[1].cqe[0].status);
        assert_int_equal(mm_fixture_counters(&b)->mm_bad_keys, rows[r].bad_key);
        assert_int_equal(mm_fixture_counters(&b)->mm_bad_addresses, !rows[r].bad_key);
        for (unsigned i = 0; i < 3; i++)
            expect_text(&b.m[i].got[AGG_MM_ABORT], AGG_E_MEMBER_LOST,
                        "member 1 (h1) asked for what it may not at ");
        mm_fixture_close(&b);
    }
}

static void sends_and_immediates_and_atomics_are_refused(void **state)
{
    static const enum wr_op ops[] = {WR_SEND, WR_WRITE_IMM, WR_FETCH_ADD};

    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        struct mm_fixture b;
        struct wqe w;

        open_fixture(&b, 2);
        mm_fixture_bind_all(&b);
        w = load_of(&b.m[0], MM_BASE, rte_be_to_cpu_32(b.m[0].got[AGG_MM_BIND_REPLY].rkey), 8);
        w.op = (uint8_t)ops[k];
        mm_fixture_post(&b.m[0], &w);
        assert_true(mm_fixture_run(&b, 10 * MS));
        assert_int_equal(b.m[0].n_bad, 1);
        mm_fixture_close(&b);
    }
}

/* Another host knows the number of a member's queue pair, and the key: its message has no
 * effect. */
static void who_is_not_a_member_reaches_nothing(void **state)
{
    struct mm_fixture b;
    struct wqe w;
    uint64_t loads;

    (void)state;
    mm_fixture_open(
        &b, &(struct mm_fixture_cfg){.conf = CONF(8), .n = 3, .length = 1 << 20, .seed = 3});
    b.cfg.n = 2; /* member 2 stays outside */
    mm_fixture_bind_all(&b);
    b.m[2].got[AGG_MM_BIND_REPLY] = b.m[1].got[AGG_MM_BIND_REPLY];
    mm_fixture_connect(&b.m[2]);
    loads = mm_fixture_counters(&b)->mm_loads;
    w = load_of(&b.m[2], MM_BASE, rte_be_to_cpu_32(b.m[1].got[AGG_MM_BIND_REPLY].rkey), 4096);
    mm_fixture_post(&b.m[2], &w);
    mm_fixture_pass(&b, 60 * MS);
    assert_int_equal(b.m[2].n_cqes, 1);
    assert_int_equal(b.m[2].cqe[0].status, WC_RETRY_EXC_ERR);
    assert_int_equal(mm_fixture_counters(&b)->mm_loads, loads);
    assert_true(an_roce_counters(b.an)->drops[ROCE_SOURCE] > 0);
    mm_fixture_load(&b.m[1], (struct mm_what){.dtype = DT_FP32},
                    4096); /* the member itself goes on */
    assert_true(mm_fixture_run(&b, 10 * MS));
    assert_int_equal(b.m[1].n_bad, 0);
    b.cfg.n = 3;
    mm_fixture_close(&b);
}

/* ---- members that are gone ---- */

static void start_traffic(struct mm_fixture *b)
{
    for (unsigned i = 0; i < b->cfg.n; i++)
        for (unsigned k = 0; k < 64; k++) {
            struct mm_what w = {.off = k * 16384, .dtype = DT_FP32};

            if (i % 2)
                mm_fixture_store(&b->m[i], w, 16384);
            else
                mm_fixture_load(&b->m[i], w, 16384);
        }
    mm_fixture_pass(b, 3 * PS_PER_US); /* in the middle of it */
    assert_false(mm_fixture_settled(b));
}

static void all_know(struct mm_fixture *b, unsigned gone, const char *text)
{
    if (!mm_fixture_run(b, 200 * MS))
        fail_msg("somebody hangs");
    mm_fixture_pass(b, 100 * MS); /* the switch gives up members that do not answer */
    for (unsigned i = 0; i < b->cfg.n; i++) {
        if (i == gone)
            continue;
        expect_text(&b->m[i].got[AGG_MM_ABORT], AGG_E_MEMBER_LOST, text);
        if (b->m[i].n_bad)
            assert_int_equal(b->m[i].cqe[b->m[i].n_cqes - b->m[i].n_bad].status, WC_REM_OP_ERR);
    }
    assert_int_equal(mm_fixture_counters(b)->mm_aborts, 1);
    assert_true(an_idle(b->an));
}

static void peer_down(struct mm_fixture *b, struct mm_fixture_member *m)
{
    b->fx.f->nodes[b->sw].multimem = true; /* so the NIC sends PEER_DOWN there */
    mm_fixture_kill(m);
    mm_fixture_pass(b, PS_PER_US);
}

static void a_member_whose_process_dies_fails_the_others_requests_by_name(void **state)
{
    struct mm_fixture b;

    (void)state;
    open_fixture(&b, 5);
    mm_fixture_bind_all(&b);
    start_traffic(&b);
    peer_down(&b, &b.m[3]);
    all_know(&b, 3, "member 3 (h3) missing at ");
    for (unsigned i = 0; i < 5; i++)
        assert_true(i == 3 || b.m[i].n_bad > 0);
    mm_fixture_close(&b);
}

static void a_member_that_falls_silent_is_found_by_retries(void **state)
{
    struct mm_fixture b;

    (void)state;
    mm_fixture_open(&b, &(struct mm_fixture_cfg){
                            .conf = CONF(8), .n = 4, .length = 1 << 20, .seed = 3, .timeout = 14});
    mm_fixture_bind_all(&b);
    start_traffic(&b);
    mm_fixture_kill(&b.m[2]); /* not announced */
    all_know(&b, 2, "member 2 (h2) gives no answer at ");
    mm_fixture_close(&b);
}

static void a_link_that_goes_down_takes_its_member_out(void **state)
{
    struct mm_fixture b;

    (void)state;
    open_fixture(&b, 4);
    mm_fixture_bind_all(&b);
    start_traffic(&b);
    an_peer_down(b.an, b.m[0].node, net_now(b.fx.net));
    net_kick(b.fx.net, b.sw, 0, 0, net_now(b.fx.net));
    b.m[0].dead = true;
    all_know(&b, 0, "member 0 (h0) missing at ");
    mm_fixture_close(&b);
}

/* The member's local memory differs from the bound one. */
static void memory_that_does_not_allow_access_ends_the_group(void **state)
{
    struct mm_fixture b;
    struct mm_ctl c;

    (void)state;
    open_fixture(&b, 3);
    c = mm_fixture_bind_of(&b.m[1]);
    c.rkey = RTE_BE32(0x9999);
    mm_fixture_say(&b.m[1], AGG_MM_BIND, &c);
    mm_fixture_pass(&b, MS);
    mm_fixture_bind_all(&b);
    mm_fixture_load(&b.m[0], (struct mm_what){.dtype = DT_FP32}, 65536);
    all_know(&b, 99, "member 1 (h1) does not allow access to its memory at ");
    assert_int_equal(b.m[0].cqe[0].status, WC_REM_OP_ERR);
    mm_fixture_close(&b);
}

/* Idle when another one left: the next request is refused by a NAK. */
static void after_an_unbind_the_others_requests_are_refused(void **state)
{
    struct mm_fixture b;
    struct mm_ctl c;

    (void)state;
    open_fixture(&b, 3);
    mm_fixture_bind_all(&b);
    c = mm_fixture_bind_of(&b.m[2]);
    mm_fixture_say(&b.m[2], AGG_MM_UNBIND, &c);
    mm_fixture_pass(&b, MS);
    assert_int_equal(b.m[2].n_got[AGG_MM_UNBIND_REPLY], 1);
    mm_fixture_load(&b.m[0], (struct mm_what){.dtype = DT_FP32}, 65536);
    mm_fixture_store(&b.m[1], (struct mm_what){0}, 65536);
    assert_true(mm_fixture_run(&b, 10 * MS));
    assert_int_equal(b.m[0].cqe[0].status, WC_REM_OP_ERR);
    assert_int_equal(b.m[1].cqe[0].status, WC_REM_OP_ERR);
    assert_int_equal(mm_fixture_counters(&b)->mm_refused, 2);
    mm_fixture_close(&b);
}

static void an_unbind_in_mid_operation_ends_the_group_by_name(void **state)
{
    struct mm_fixture b;
    struct mm_ctl c;

    (void)state;
    open_fixture(&b, 4);
    mm_fixture_bind_all(&b);
    start_traffic(&b);
    c = mm_fixture_bind_of(&b.m[3]);
    mm_fixture_say(&b.m[3], AGG_MM_UNBIND, &c);
    b.m[3].dead = true; /* its own requests do not matter */
    assert_true(mm_fixture_run(&b, 100 * MS));
    mm_fixture_pass(&b, MS);
    for (unsigned i = 0; i < 3; i++)
        expect_text(&b.m[i].got[AGG_MM_ABORT], AGG_E_MEMBER_LEFT, "member 3 (h3) left ");
    b.m[3].dead = false;
    mm_fixture_close(&b);
}

/* An ABORT that a member does not acknowledge is repeated AN_RETRIES times. */
static void an_abort_that_is_not_acknowledged_is_given_up(void **state)
{
    struct mm_fixture b;

    (void)state;
    open_fixture(&b, 3);
    mm_fixture_bind_all(&b);
    b.m[0].mute = true;
    peer_down(&b, &b.m[2]);
    mm_fixture_pass(&b, 300 * MS);
    assert_true(b.m[0].n_got[AGG_MM_ABORT] > 10);
    assert_int_equal(b.m[1].n_got[AGG_MM_ABORT] > 0, 1);
    assert_true(an_idle(b.an));
    mm_fixture_close(&b);
}

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_bind_that_is_wrong_is_refused_by_name),
        TEST(quotas_refuse_a_bind_and_name_what_is_left),
        TEST(a_repeated_bind_gets_the_same_answer),
        TEST(a_repeated_ready_is_answered_again),
        TEST(a_switch_without_multimem_says_so),
        TEST(wrong_keys_and_addresses_are_refused_and_counted),
        TEST(sends_and_immediates_and_atomics_are_refused),
        TEST(who_is_not_a_member_reaches_nothing),
        TEST(a_member_whose_process_dies_fails_the_others_requests_by_name),
        TEST(a_member_that_falls_silent_is_found_by_retries),
        TEST(a_link_that_goes_down_takes_its_member_out),
        TEST(memory_that_does_not_allow_access_ends_the_group),
        TEST(after_an_unbind_the_others_requests_are_refused),
        TEST(an_unbind_in_mid_operation_ends_the_group_by_name),
        TEST(an_abort_that_is_not_acknowledged_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
