/* SPDX-License-Identifier: BSD-3-Clause */
/* Membership of multicast groups: what an HCA says, byte by byte, and what the NIC's answers do. */
#include "tests/host/hca/pair.h"

#define GROUP  0xe0810203u /* its 24th bit is not in the MAC */
#define OTHER  0xe1000009u
#define REPORT 0x16
#define LEAVE  0x17

static struct pair p;

/* The next frame that side 0 sends; false: none. */
static bool next_frame(uint8_t frame[FRAME_MIN_BYTES])
{
    struct endpoint *ep = &p.s[0].ep;
    struct rte_mbuf *m;

    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++)
        if (ep->output(ep->ctx, (enum endpoint_queue)q, &m, 1, p.now_ps)) {
            assert_int_equal(m->data_len, FRAME_MIN_BYTES);
            memcpy(frame, rte_pktmbuf_mtod(m, const uint8_t *), FRAME_MIN_BYTES);
            rte_pktmbuf_free(m);
            return true;
        }
    return false;
}

/* Takes a frame of the host to the NIC, changed as `type` and `src` say, back to it; frames that are no
 * answers go on to the engine, which counts what it drops. */
static void answer(const uint8_t *frame, uint8_t type, uint32_t src)
{
    struct endpoint *ep = &p.s[0].ep;
    struct rte_mbuf *m = rte_pktmbuf_alloc(p.pool);
    uint8_t *b = (uint8_t *)rte_pktmbuf_append(m, FRAME_MIN_BYTES);

    memcpy(b, frame, FRAME_MIN_BYTES);
    b[38] = type;
    b[26] = src >> 24, b[27] = src >> 16, b[28] = src >> 8, b[29] = src;
    ep->input(ep->ctx, &m, 1, p.now_ps);
}

static uint16_t sum(const uint8_t *b, size_t n)
{
    uint32_t s = 0;

    for (size_t i = 0; i < n; i += 2)
        s += (uint32_t)(b[i] << 8 | b[i + 1]);
    return (uint16_t)((s & 0xffff) + (s >> 16));
}

/* RFC 2236 and 2113, without the checksums, which make the sums 0xffff. */
static void expect_message(uint32_t group, bool leave)
{
    const uint32_t dst = leave ? 0xe0000002 : group;
    uint8_t f[FRAME_MIN_BYTES], expected[FRAME_MIN_BYTES] = {0x01,
                                                             0x00,
                                                             0x5e,
                                                             dst >> 16 & 0x7f,
                                                             (uint8_t)(dst >> 8),
                                                             (uint8_t)dst, /* to */
                                                             0x02,
                                                             0x54,
                                                             10,
                                                             0,
                                                             0,
                                                             1, /* from */
                                                             0x08,
                                                             0x00,
                                                             0x46,
                                                             0xc0,
                                                             0,
                                                             32,
                                                             0,
                                                             0,
                                                             0,
                                                             0,
                                                             1,
                                                             2,
                                                             0,
                                                             0,
                                                             10,
                                                             0,
                                                             0,
                                                             1,
                                                             (uint8_t)(dst >> 24),
                                                             (uint8_t)(dst >> 16),
                                                             (uint8_t)(dst >> 8),
                                                             (uint8_t)dst,
                                                             0x94,
                                                             0x04,
                                                             0,
                                                             0,
                                                             leave ? LEAVE : REPORT,
                                                             0,
                                                             0,
                                                             0,
                                                             (uint8_t)(group >> 24),
                                                             (uint8_t)(group >> 16),
                                                             (uint8_t)(group >> 8),
                                                             (uint8_t)group};

    assert_true(next_frame(f));
    assert_int_equal(sum(f + 14, 24), 0xffff);
    assert_int_equal(sum(f + 38, 8), 0xffff);
    memcpy(expected + 24, f + 24, 2);
    memcpy(expected + 40, f + 40, 2);
    memcpy(expected + 6, f + 6, 2); /* the prefix of the fabric's MACs */
    assert_memory_equal(f, expected, sizeof(f));
}

static void expect_none(void)
{
    uint8_t f[FRAME_MIN_BYTES];

    assert_false(next_frame(f));
}

static struct ibv_qp *begin(void)
{
    struct ibv_qp *qp;

    pair_open(&p);
    qp = make_qp(&p.s[0], IBV_QPT_UD);
    ud_ready(qp, 1);
    return qp;
}

static int attach(struct ibv_qp *qp, uint32_t group)
{
    union ibv_gid g = gid_of(group);

    return ibv_attach_mcast(qp, &g, 0);
}

static int detach(struct ibv_qp *qp, uint32_t group)
{
    union ibv_gid g = gid_of(group);

    return ibv_detach_mcast(qp, &g, 0);
}

static void end(struct ibv_qp *qp)
{
    (void)detach(qp, GROUP);
    (void)detach(qp, OTHER);
    (void)detach(qp, OTHER + 1);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    pair_settle(&p);
    pair_close(&p);
}

static void reports_and_leaves_are_those_of_the_standard(void **state)
{
    struct ibv_qp *qp = begin();

    (void)state;
    expect_none();
    assert_int_equal(attach(qp, GROUP), 0);
    expect_message(GROUP, false);
    expect_none();
    assert_int_equal(detach(qp, GROUP), 0);
    expect_message(GROUP, true);
    expect_none();
    end(qp);
}

/* In order; of one group only what is true by now. */
static void messages_wait_in_order(void **state)
{
    struct ibv_qp *qp = begin();

    (void)state;
    assert_int_equal(attach(qp, GROUP), 0);
    assert_int_equal(attach(qp, OTHER), 0);
    assert_int_equal(attach(qp, OTHER + 1), 0);
    assert_int_equal(detach(qp, OTHER), 0);
    expect_message(GROUP, false);
    expect_message(OTHER + 1, false);
    expect_message(OTHER, true);
    expect_none();
    end(qp);
}

/* The first of several queue pairs joins, the last one leaves. */
static void a_host_joins_once(void **state)
{
    struct ibv_qp *qp = begin(), *second = make_qp(&p.s[0], IBV_QPT_UD);

    (void)state;
    ud_ready(second, 1);
    assert_int_equal(attach(qp, GROUP), 0);
    expect_message(GROUP, false);
    assert_int_equal(attach(second, GROUP), 0);
    expect_none();
    assert_int_equal(detach(qp, GROUP), 0);
    expect_none();
    assert_int_equal(detach(second, GROUP), 0);
    expect_message(GROUP, true);
    assert_int_equal(attach(qp, GROUP), 0); /* anew */
    expect_message(GROUP, false);
    assert_int_equal(detach(qp, GROUP), 0);
    assert_int_equal(ibv_destroy_qp(second), 0);
    end(qp);
}

static void a_refused_group_is_asked_for_again(void **state)
{
    static const struct {
        uint8_t type;
        uint32_t src;
        bool again; /* the next queue pair asks again */
    } rows[] = {
        {REPORT, IP_A, false}, {LEAVE, IP_A, true}, {LEAVE, IP_B, false}, {0x11, IP_A, false}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp *qp = begin(), *second = make_qp(&p.s[0], IBV_QPT_UD);
        uint8_t f[FRAME_MIN_BYTES];

        ud_ready(second, 1);
        assert_int_equal(attach(qp, GROUP), 0);
        assert_true(next_frame(f));
        answer(f, rows[i].type, rows[i].src);
        assert_int_equal(attach(second, GROUP), 0);
        if (rows[i].again)
            expect_message(GROUP, false);
        expect_none();
        assert_int_equal(detach(second, GROUP), 0);
        assert_int_equal(ibv_destroy_qp(second), 0);
        assert_int_equal(detach(qp, GROUP), 0);
        end(qp);
    }
}

/* An answer about a group that nobody is in changes nothing. */
static void a_late_answer_is_of_no_group(void **state)
{
    struct ibv_qp *qp = begin();
    uint8_t f[FRAME_MIN_BYTES];

    (void)state;
    assert_int_equal(attach(qp, GROUP), 0);
    assert_true(next_frame(f));
    assert_int_equal(attach(qp, OTHER), 0);
    expect_message(OTHER, false);
    assert_int_equal(detach(qp, GROUP), 0);
    answer(f, LEAVE, IP_A);
    expect_message(GROUP, true);
    assert_int_equal(attach(qp, GROUP), 0);
    expect_message(GROUP, false);
    assert_int_equal(detach(qp, GROUP), 0);
    end(qp);
}

/* Whatever else comes is the engine's: also what is nearly an answer. */
static void only_answers_are_taken(void **state)
{
    static const struct {
        unsigned at; /* which byte is another */
        uint8_t is;
    } rows[] = {{12, 0x86}, {13, 0x06}, {14, 0x45}, {23, 17}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp *qp = begin(), *second = make_qp(&p.s[0], IBV_QPT_UD);
        uint8_t f[FRAME_MIN_BYTES];

        ud_ready(second, 1);
        assert_int_equal(attach(qp, GROUP), 0);
        assert_true(next_frame(f));
        f[rows[i].at] = rows[i].is;
        answer(f, LEAVE, IP_A);
        assert_int_equal(attach(second, GROUP), 0);
        expect_none();
        assert_int_equal(detach(second, GROUP), 0);
        assert_int_equal(ibv_destroy_qp(second), 0);
        end(qp);
    }
}

/* The NIC behind a port that comes up may be a new one. */
static void groups_are_joined_again_with_the_port(void **state)
{
    struct ibv_qp *qp = begin();

    (void)state;
    assert_int_equal(attach(qp, GROUP), 0);
    assert_int_equal(attach(qp, OTHER), 0);
    expect_message(GROUP, false);
    expect_message(OTHER, false);
    assert_int_equal(detach(qp, GROUP), 0);
    expect_message(GROUP, true);
    hca_port_state(p.s[0].h, false, p.now_ps);
    hca_port_state(p.s[0].h, true, p.now_ps);
    expect_message(OTHER, false);
    expect_none();
    end(qp);
}

/* ---- a program that waits for the answer ---- */

struct nic {
    uint8_t answer;   /* 0: it is silent */
    unsigned silent;  /* how often it is asked in vain before */
    int64_t later_ps; /* by how much time goes on each time */
    unsigned idles;
};
static struct nic nic;

static void idle(void *ctx)
{
    uint8_t f[FRAME_MIN_BYTES];

    (void)ctx;
    nic.idles++;
    p.now_ps += nic.later_ps;
    if (next_frame(f) && nic.answer)
        answer(f, nic.answer, IP_A);
    else
        p.s[0].ep.tick(p.s[0].ep.ctx, p.now_ps);
}

static void a_program_waits_for_the_answer(void **state)
{
    static const struct {
        uint8_t answer;
        int64_t later_ps;
        int rc;
        unsigned idles;
    } rows[] = {
        {REPORT, 1, 0, 1},
        {LEAVE, 1, ENOSPC, 1},
        {0, 500 * PS_PER_MS, 0, 5},    /* two seconds, and the one beyond them */
        {0x11, 500 * PS_PER_MS, 0, 5}, /* which is no answer */
    };
    const struct hca_driver drv = {.idle = idle};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp *qp;

        pair_open_driven(&p, &drv);
        qp = make_qp(&p.s[0], IBV_QPT_UD);
        ud_ready(qp, 1);
        nic = (struct nic){.answer = rows[i].answer, .later_ps = rows[i].later_ps};
        assert_int_equal(attach(qp, GROUP), rows[i].rc);
        assert_int_equal(nic.idles, rows[i].idles);
        /* Who is refused is not attached. */
        assert_int_equal(detach(qp, GROUP), rows[i].rc ? EINVAL : 0);
        end(qp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_and_leaves_are_those_of_the_standard),
        cmocka_unit_test(messages_wait_in_order),
        cmocka_unit_test(a_host_joins_once),
        cmocka_unit_test(a_refused_group_is_asked_for_again),
        cmocka_unit_test(a_late_answer_is_of_no_group),
        cmocka_unit_test(only_answers_are_taken),
        cmocka_unit_test(groups_are_joined_again_with_the_port),
        cmocka_unit_test(a_program_waits_for_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
