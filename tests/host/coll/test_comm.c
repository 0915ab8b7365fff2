/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators over software HCAs and an aggregation node, in memory and in virtual time. */
#include "tests/host/coll/coll_fixture.h"

#define OPS   4 /* operations in flight together */
#define RING  (1u << ALGO_RING)
#define SHARP (1u << ALGO_SHARP)

/* Small values: every sum is exact in fp32, whatever the order. */
static float value(unsigned rank, unsigned op, size_t i)
{
    return (float)((int)((i * 13 + rank * 7 + op * 3 + i / 97) % 29) - 11);
}

struct run {
    struct coll_req *req[FIXTURE_RANKS][OPS];
    float *in[FIXTURE_RANKS][OPS], *out[FIXTURE_RANKS][OPS];
};
static struct run *run_of_rig;

static bool all_done(struct fixture *g)
{
    for (unsigned r = 0; r < g->n; r++)
        for (unsigned k = 0; k < OPS; k++)
            if (!coll_test(run_of_rig->req[r][k]))
                return false;
    return true;
}

static float *buffer(struct fixture *g, unsigned rank, size_t count)
{
    return fixture_buffer(g, rank, (count + 1) * sizeof(float));
}

static void start(struct fixture *g, struct run *u, enum coll_algo algo, unsigned k, size_t count,
                  bool in_place, int64_t skew)
{
    for (unsigned r = 0; r < g->n; r++) {
        struct coll_args a = {
            .kind = COLL_ALLREDUCE, .algo = algo, .count = count, .type = DT_FP32, .op = OP_SUM};
        char err[COMM_TEXT] = "";

        u->out[r][k] = buffer(g, r, count);
        u->in[r][k] = in_place ? u->out[r][k] : buffer(g, r, count);
        for (size_t i = 0; i < count; i++)
            u->in[r][k][i] = value(r, k, i);
        a.send = u->in[r][k], a.recv = u->out[r][k];
        if (coll_start(g->comm[r], &a, &u->req[r][k], err))
            fail_msg("%s", err);
        fixture_run(g, skew, false, fixture_never);
    }
}

static void check(struct fixture *g, struct run *u, unsigned k, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float want = 0;

        for (unsigned r = 0; r < g->n; r++)
            want += value(r, k, i);
        for (unsigned r = 0; r < g->n; r++)
            if (u->out[r][k][i] != want)
                fail_msg("operation %u, rank %u, element %zu of %zu: %g, not %g", k, r, i, count,
                         (double)u->out[r][k][i], (double)want);
    }
    for (unsigned r = 0; r < g->n; r++) {
        assert_int_equal(coll_test(u->req[r][k]), 1);
        coll_free(u->req[r][k]);
    }
}

/* Starts OPS operations at once, of both algorithms in turn where both are set up, and checks every
 * element. */
static void reduce(struct fixture *g, unsigned algos, const size_t *counts, int64_t skew)
{
    struct run u;

    run_of_rig = &u;
    for (unsigned k = 0; k < OPS; k++)
        start(g, &u, algos == RING || (algos != SHARP && k % 2) ? ALGO_RING : ALGO_SHARP, k,
              counts[k], k & 2, skew);
    if (!fixture_run(g, 30 * PS_PER_S, g->drop != NULL, all_done))
        fail_msg("hangs: %s", comm_error(g->comm[0]));
    for (unsigned k = 0; k < OPS; k++)
        check(g, &u, k, counts[k]);
}

static const size_t small[OPS] = {1, 0, 7, 1000}, medium[OPS] = {4096, 99991, 65536, 8191},
                    large[OPS] = {1 << 20, 3, 777777, 1 << 19};

struct row {
    unsigned n, per_host;
    uint32_t mtu;
    unsigned algos;
    const size_t *counts;
};
static const struct row rows[] = {
    {1, 1, 4096, RING | SHARP, small},  {2, 1, 4096, RING, small},
    {2, 1, 4096, RING, medium},         {3, 1, 1024, RING, medium},
    {4, 2, 4096, RING, medium},         {8, 1, 4096, RING, large},
    {16, 4, 256, RING, small},          {2, 1, 4096, SHARP, small},
    {3, 1, 1024, SHARP, medium},        {4, 2, 4096, SHARP, medium},
    {8, 1, 4096, SHARP, large},         {8, 1, 256, SHARP, medium},
    {8, 2, 4096, RING | SHARP, medium}, {16, 4, 2048, RING | SHARP, small},
};

/* Every element is right on every rank, nothing is repeated, refused or left over, and closing
 * needs no retry. */
static void exact_and_without_retransmission(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *w = &rows[i];
        struct fixture *g = fixture_new(w->n, w->per_host, w->mtu, NULL);

        fixture_connect(g, w->algos, FIXTURE_RANKS);
        assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
        reduce(g, w->algos, w->counts, 0);
        reduce(g, w->algos, w->counts, 70 * PS_PER_US);
        assert_int_equal(fixture_troubles(g), 0);
        fixture_free(g, false);
    }
}

static bool first_is_over(struct fixture *g, unsigned rank)
{
    const struct run *u = run_of_rig;

    (void)g;
    return u && u->req[rank][0] && coll_test(u->req[rank][0]);
}

/* In a process an empty poll sleeps, for a millisecond where nothing more is to come: the time of
 * every operation. */
static void end_is_told_before_another_poll(void **state)
{
    static const enum coll_algo algos[] = {ALGO_RING, ALGO_SHARP};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct fixture *g = fixture_new(4, 1, 4096, NULL);
        struct run u = {0};

        fixture_connect(g, 1u << algos[i], FIXTURE_RANKS);
        assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
        run_of_rig = &u;
        g->over = first_is_over;
        start(g, &u, algos[i], 0, 50000, false, 0);
        for (unsigned k = 1; k < OPS; k++)
            start(g, &u, algos[i], k, 0, false, 0);
        assert_true(fixture_run(g, PS_PER_S, false, all_done));
        assert_int_equal(g->slept_over, 0);
        g->over = NULL;
        for (unsigned k = 0; k < OPS; k++)
            check(g, &u, k, k ? 0 : 50000);
        fixture_free(g, false);
    }
}

static bool one_in_twenty(uint64_t nth)
{
    return (nth * 0x9e3779b97f4a7c15ULL >> 32) % 20 == 0;
}

/* Loss costs time and nothing else: data, JOINs, phases of neighbours, closing. */
static void exact_under_loss(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct fixture *g = fixture_new(4, 1, 4096, one_in_twenty);

        fixture_connect(g, i ? SHARP : RING, FIXTURE_RANKS);
        assert_true(fixture_run(g, 10 * PS_PER_S, true, fixture_ready));
        reduce(g, i ? SHARP : RING, medium, 0);
        assert_true(fixture_troubles(g) > 0);
        g->drop = NULL; /* the last answer of a closing may be lost for good: the rank that would
                           repeat it is gone */
        fixture_free(g, true);
    }
}

static struct coll_req *start_one(struct fixture *g, unsigned r, enum coll_algo algo,
                                  const struct coll_args *like)
{
    struct coll_args a = *like;
    struct coll_req *req = NULL;
    char err[COMM_TEXT] = "";

    a.algo = algo;
    a.send = a.recv = buffer(g, r, 1 << 16);
    if (coll_start(g->comm[r], &a, &req, err))
        fail_msg("%s", err);
    return req;
}

/* One rank differs in type, operation or size: all end, and each text names what differs. */
static void disagreement_is_named_on_all(void **state)
{
    static const struct coll_args other[] = {
        {.count = 5000, .type = DT_INT32, .op = OP_SUM},
        {.count = 5000, .type = DT_FP32, .op = OP_MAX},
        {.count = 5001, .type = DT_FP32, .op = OP_SUM},
    };
    static const char *const words[] = {"type", "reduction", "size"};
    const struct coll_args usual = {.count = 5000, .type = DT_FP32, .op = OP_SUM};

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        enum coll_algo algo = i < 3 ? ALGO_RING : ALGO_SHARP;
        struct fixture *g = fixture_new(4, 1, 4096, NULL);
        struct coll_req *req[4];

        fixture_connect(g, 1u << algo, FIXTURE_RANKS);
        assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
        for (unsigned r = 0; r < 4; r++)
            req[r] = start_one(g, r, algo, r == 2 ? &other[i % 3] : &usual);
        assert_true(fixture_run(g, PS_PER_S, true, fixture_failed));
        for (unsigned r = 0; r < 4; r++) {
            const char *text = comm_error(g->comm[r]);

            assert_int_equal(coll_test(req[r]), -5);
            coll_free(req[r]);
            if (algo == ALGO_RING ? !strstr(text, words[i]) || strncmp(text, "rank ", 5)
                                  : !strstr(text, "E_OP_MISMATCH"))
                fail_msg("case %u, rank %u: \"%s\"", i, r, text);
        }
        fixture_free(g, true);
    }
}

/* The second of two ranks runs another operation: one that messages reveal, and one in which both
 * ranks wait for each other. */
static void collective_and_root_are_agreed_upon(void **state)
{
    static const struct {
        struct coll_args a, b;
        const char *word;
    } cases[] = {
        {{.kind = COLL_ALLGATHER}, {.kind = COLL_ALLTOALL}, "collective"},
        {{.kind = COLL_SENDRECV}, {.kind = COLL_BARRIER}, "collective"},
        {{.kind = COLL_GATHER, .root = 0}, {.kind = COLL_GATHER, .root = 1}, "root"},
        {{.kind = COLL_SCATTER, .root = 0}, {.kind = COLL_SCATTER, .root = 1}, "root"},
        {{.kind = COLL_SCATTER, .root = 1}, {.kind = COLL_SCATTER, .root = 0}, "root"},
        {{.kind = COLL_ALLTOALL}, {.kind = COLL_ALLTOALL, .sparse = 1}, "size"},
        {{.kind = COLL_ALLTOALL, .count = 100}, {.kind = COLL_ALLTOALL, .count = 101}, "size"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture *g = fixture_new(2, 1, 4096, NULL);
        struct coll_req *req[2];

        fixture_connect(g, 1u << ALGO_DIRECT, FIXTURE_RANKS);
        assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
        for (unsigned r = 0; r < 2; r++) {
            struct coll_args a = r ? cases[i].b : cases[i].a;
            char err[COMM_TEXT] = "";

            a.algo = ALGO_DIRECT;
            a.type = DT_FP32;
            a.count = a.count ? a.count : 5000;
            a.send = buffer(g, r, 1 << 14);
            a.recv = buffer(g, r, 1 << 14);
            if (coll_start(g->comm[r], &a, &req[r], err))
                fail_msg("%s", err);
        }
        if (!fixture_run(g, 2 * PS_PER_S, true, fixture_failed))
            fail_msg("case %u goes unnoticed", i);
        for (unsigned r = 0; r < 2; r++) {
            if (!strstr(comm_error(g->comm[r]), cases[i].word) ||
                !strstr(comm_error(g->comm[r]), "disagrees"))
                fail_msg("case %u, rank %u: \"%s\"", i, r, comm_error(g->comm[r]));
            coll_free(req[r]);
        }
        fixture_free(g, true);
    }
}

/* It would not believe the others' datagrams, nor they its own. */
static void a_rank_with_another_key_is_named(void **state)
{
    struct fixture *g = fixture_new(3, 1, 4096, NULL);
    char err[COMM_TEXT];

    (void)state;
    fixture_create(g, SHARP, 2);
    assert_int_equal(comm_connect(g->comm[0], g->blobs, err), -EPROTO);
    assert_string_equal(err, "rank 2 (h2) is in another group, or has another key");
    free(g->blobs);
    fixture_free(g, true);
}

/* All frames of a rank are lost: its neighbours notice, name it, and inform the others. */
static void lost_rank_is_named_on_all(void **state)
{
    const struct coll_args args = {.count = 60000, .type = DT_FP32, .op = OP_SUM};
    struct fixture *g = fixture_new(4, 1, 4096, NULL);
    struct coll_req *req[4];

    (void)state;
    fixture_connect(g, RING, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    g->cut[1] = true;
    for (unsigned r = 0; r < 4; r++)
        req[r] = start_one(g, r, ALGO_RING, &args);
    assert_true(fixture_run(g, 20 * PS_PER_S, true, fixture_failed));
    for (unsigned r = 0; r < 4; r++) {
        if (r != 1 && strncmp(comm_error(g->comm[r]), "rank 1 (", 8))
            fail_msg("rank %u: \"%s\"", r, comm_error(g->comm[r]));
        coll_free(req[r]);
    }
    fixture_free(g, true);
}

/* comm_abort() by a launcher ends every operation on every rank at once, without a single retry. */
static void abort_spreads(void **state)
{
    const struct coll_args args = {.count = 60000, .type = DT_FP32, .op = OP_SUM};
    struct fixture *g = fixture_new(5, 1, 4096, NULL);
    struct coll_req *req[5];

    (void)state;
    fixture_connect(g, RING | SHARP, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    for (unsigned r = 0; r < 4; r++)
        req[r] = start_one(g, r, r ? ALGO_RING : ALGO_SHARP, &args);
    fixture_run(g, 20 * PS_PER_US, false, fixture_never);
    comm_abort(g->comm[0], "rank 4 (h4) was killed");
    assert_true(fixture_run(g, PS_PER_S, false, fixture_failed));
    for (unsigned r = 0; r < 4; r++) {
        assert_string_equal(comm_error(g->comm[r]), "rank 4 (h4) was killed");
        assert_int_equal(coll_test(req[r]), -5);
        coll_free(req[r]);
    }
    fixture_free(g, true);
}

/* A peer may give no reason: who asks why still gets a sentence. */
static void an_abort_without_a_reason_has_words(void **state)
{
    struct fixture *g = fixture_new(2, 1, 4096, NULL);
    struct coll_args a = {.algo = ALGO_RING, .count = 1, .type = DT_FP32};
    struct coll_req *req;
    char err[COMM_TEXT] = "";

    (void)state;
    fixture_connect(g, RING, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    comm_abort(g->comm[0], "");
    assert_true(fixture_run(g, PS_PER_S, false, fixture_failed));
    for (unsigned r = 0; r < 2; r++) {
        assert_int_equal(coll_start(g->comm[r], &a, &req, err), -5);
        assert_non_null(strstr(err, "failed, without a reason given"));
    }
    fixture_free(g, true);
}

static void misuse_is_refused_in_words(void **state)
{
    struct fixture *g = fixture_new(2, 1, 4096, NULL);
    static float stray[64];
    struct coll_args a = {
        .algo = ALGO_RING, .send = stray, .recv = stray, .count = 64, .type = DT_FP32};
    struct coll_req *req;
    char err[COMM_TEXT] = "";
    float *own;

    (void)state;
    fixture_connect(g, RING, FIXTURE_RANKS);
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -107);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -14);
    assert_non_null(strstr(err, "not registered"));
    own = buffer(g, 0, 64);
    a.send = own, a.recv = own + 1, a.count = 60;
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -22);
    assert_non_null(strstr(err, "overlap"));
    a.recv = own, a.algo = ALGO_SHARP;
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -95);
    a.algo = ALGO_RING, a.count = (size_t)-1;
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -7);
    assert_non_null(strstr(err, "at most"));
    a.count = 60, a.type = DT_COUNT;
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -22);
    assert_non_null(strstr(err, "type"));
    a.type = DT_FP32, a.op = OP_BXOR;
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -22);
    assert_non_null(strstr(err, "no bxor of float"));
    a.op = OP_SUM, a.kind = COLL_BROADCAST, a.root = 2;
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -22);
    assert_non_null(strstr(err, "root 2"));
    a.root = 0, a.kind = COLL_ALLTOALL;
    assert_int_equal(coll_start(g->comm[0], &a, &req, err), -95);
    assert_non_null(strstr(err, "alltoall by ring"));
    fixture_free(g, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_and_without_retransmission),
        cmocka_unit_test(end_is_told_before_another_poll),
        cmocka_unit_test(exact_under_loss),
        cmocka_unit_test(disagreement_is_named_on_all),
        cmocka_unit_test(collective_and_root_are_agreed_upon),
        cmocka_unit_test(a_rank_with_another_key_is_named),
        cmocka_unit_test(lost_rank_is_named_on_all),
        cmocka_unit_test(abort_spreads),
        cmocka_unit_test(an_abort_without_a_reason_has_words),
        cmocka_unit_test(misuse_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
