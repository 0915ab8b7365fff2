/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments of every collective: refused in words where one rank can know, and the
 * communicator stays usable; named on all ranks where they differ between them.
 */
#include "collective/sched.h"
#include "tests/host/coll/coll_fixture.h"

#include <errno.h>

#define RANKS 3u
#define COUNT 600u
#define ROOM  (4 * RANKS * COUNT * sizeof(float))
#define HOSTS                                                                                      \
    (1u << ALGO_RING | 1u << ALGO_TREE | 1u << ALGO_HALVING | 1u << ALGO_PAIRWISE |                \
     1u << ALGO_DIRECT | 1u << ALGO_CHAIN)

static uint8_t *mem[RANKS], *more[RANKS];

static struct fixture *open_fixture(unsigned algos)
{
    struct fixture *g = fixture_new(RANKS, 1, 4096, NULL);

    fixture_connect(g, algos, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    for (unsigned r = 0; r < RANKS; r++) {
        mem[r] = fixture_buffer(g, r, ROOM);
        more[r] = fixture_buffer(g, r, ROOM);
    }
    return g;
}

static struct coll_args good(enum coll_kind kind, enum coll_algo algo, unsigned r)
{
    return (struct coll_args){.kind = kind,
                              .algo = algo,
                              .send = mem[r],
                              .recv = more[r],
                              .count = kind == COLL_BARRIER ? 0 : COUNT,
                              .type = DT_FP32,
                              .op = OP_SUM};
}

static bool rooted(enum coll_kind k)
{
    return k == COLL_REDUCE || k == COLL_BROADCAST || k == COLL_GATHER || k == COLL_SCATTER;
}

/* ---- what one rank can know ---- */

static float stray[4 * RANKS * COUNT]; /* not registered */

enum wrong {
    NEGATIVE,
    TOO_LONG,
    WRAPS,
    TYPE,
    NO_TYPE,
    REDUCTION,
    NO_BITS,
    ROOT,
    SPARSE,
    SEND_STRAY,
    RECV_STRAY,
    SEND_NULL,
    BEYOND,
    OVERLAP,
    ALGO,
    WRONGS
};

/* Arguments of rank 0, the root. False: the collective has no such argument. */
static bool spoil(struct coll_args *a, enum wrong w, int *rc, const char **word)
{
    bool data = a->kind != COLL_BARRIER;

    *rc = -EINVAL;
    switch (w) {
    case NEGATIVE:
        a->count = (size_t)-1, *rc = -E2BIG, *word = "at most";
        return data;
    case TOO_LONG:
        a->count = SCHED_MAX_BYTES / 4 + 1, *rc = -E2BIG, *word = "at most";
        return data;
    case WRAPS:
        a->count = ((size_t)1 << 62) + 1, *rc = -E2BIG, *word = "at most";
        return data;
    case TYPE:
        a->type = DT_COUNT, *word = "type";
        return data;
    case NO_TYPE:
        a->type = (enum dtype) - 1, *word = "type";
        return data;
    case REDUCTION:
        a->op = OP_COUNT, *word = "reduction";
        return coll_reduces(a->kind);
    case NO_BITS:
        a->op = OP_BXOR, *word = "no bxor of float";
        return coll_reduces(a->kind);
    case ROOT:
        a->root = RANKS, *word = "root 3: there are ranks 0 to 2";
        return rooted(a->kind);
    case SPARSE:
        a->sparse = RANKS + 1, *word = "blocks";
        return a->kind == COLL_ALLTOALL;
    case SEND_STRAY:
        a->send = stray, *rc = -EFAULT, *word = "send buffer is not registered";
        return data;
    case RECV_STRAY:
        a->recv = stray, *rc = -EFAULT, *word = "receive buffer is not registered";
        return data;
    case SEND_NULL:
        a->send = NULL, *rc = -EFAULT, *word = "send buffer is not registered";
        return data;
    case BEYOND:
        a->recv = mem[0] < more[0] ? mem[0] : more[0];
        a->send = (mem[0] < more[0] ? more[0] : mem[0]) + ROOM - 4;
        *rc = -EFAULT, *word = "send buffer is not registered";
        return data;
    case OVERLAP:
        a->recv = mem[0] + 4, *word = "overlap";
        return data;
    case ALGO:
        a->algo = ALGO_SHARP, *rc = -ENOTSUP, *word = "not set up";
        return true;
    default:
        return false;
    }
}

static struct coll_req *req[RANKS];

static bool all_done(struct fixture *g)
{
    (void)g;
    for (unsigned r = 0; r < RANKS; r++)
        if (!coll_test(req[r]))
            return false;
    return true;
}

static void start(struct fixture *g, unsigned r, const struct coll_args *a)
{
    char err[COMM_TEXT] = "";

    if (coll_start(g->comm[r], a, &req[r], err))
        fail_msg("collective %d by %s: %s", a->kind, sched_algo_name(a->algo), err);
}

/* The first algorithm of the hosts that has it. */
static enum coll_algo algo_of(enum coll_kind kind)
{
    enum coll_algo a = 0;

    while (!(HOSTS >> a & 1) || !sched_has(kind, a))
        a++;
    return a;
}

static void refused_in_words_and_nothing_is_lost(void **state)
{
    struct fixture *g = open_fixture(HOSTS);

    (void)state;
    for (enum coll_kind kind = 0; kind < COLL_KINDS; kind++) {
        for (enum wrong w = 0; w < WRONGS; w++) {
            struct coll_args a = good(kind, algo_of(kind), 0);
            char err[COMM_TEXT] = "";
            const char *word = "";
            int rc, want;

            if (!spoil(&a, w, &want, &word))
                continue;
            rc = coll_start(g->comm[0], &a, &req[0], err);
            if (rc != want || !strstr(err, word))
                fail_msg("collective %d, case %d: %d \"%s\"", kind, w, rc, err);
            assert_int_equal(comm_state(g->comm[0]), COMM_READY);
        }
        for (unsigned r = 0; r < RANKS; r++) {
            struct coll_args a = good(kind, algo_of(kind), r);

            start(g, r, &a);
        }
        assert_true(fixture_run(g, PS_PER_S, true, all_done));
        for (unsigned r = 0; r < RANKS; r++) {
            assert_int_equal(coll_test(req[r]), 1);
            coll_free(req[r]);
        }
    }
    fixture_free(g, true);
}

static void there_is_no_such_collective(void **state)
{
    struct fixture *g = open_fixture(HOSTS);
    struct coll_args a = good(COLL_KINDS, ALGO_DIRECT, 0);
    char err[COMM_TEXT] = "";

    (void)state;
    assert_int_equal(coll_start(g->comm[0], &a, &req[0], err), -EINVAL);
    assert_non_null(strstr(err, "no such collective"));
    a = good(COLL_ALLREDUCE, ALGO_AUTO, 0);
    assert_int_equal(coll_start(g->comm[0], &a, &req[0], err), -EINVAL);
    assert_non_null(strstr(err, "algorithm"));
    fixture_free(g, true);
}

/* ---- what differs between ranks ---- */

enum differs { COUNTS, TYPES, REDUCTIONS, ROOTS, BLOCKS, COLLECTIVES, DIFFERS };

/* Of the last rank. */
static bool change(struct coll_args *a, enum differs d)
{
    switch (d) {
    case COUNTS:
        a->count--;
        return a->kind != COLL_BARRIER;
    case TYPES:
        a->type = DT_INT32;
        return a->kind != COLL_BARRIER;
    case REDUCTIONS:
        a->op = OP_MAX;
        return coll_reduces(a->kind);
    case ROOTS:
        a->root = 1;
        return rooted(a->kind);
    case BLOCKS:
        a->sparse = 1;
        return a->kind == COLL_ALLTOALL;
    case COLLECTIVES:
        a->kind = a->kind == COLL_ALLREDUCE ? COLL_ALLGATHER : COLL_ALLREDUCE;
        a->count = COUNT;
        return sched_has(a->kind, a->algo);
    default:
        return false;
    }
}

static void disagree(enum coll_kind kind, enum coll_algo algo, enum differs d)
{
    struct fixture *g;

    for (unsigned r = 0; r < RANKS; r++)
        req[r] = NULL;
    if (!change(&(struct coll_args){.kind = kind, .algo = algo}, d))
        return;
    g = open_fixture(1u << algo);
    for (unsigned r = 0; r < RANKS; r++) {
        struct coll_args a = good(kind, algo, r);

        if (r == RANKS - 1)
            change(&a, d);
        start(g, r, &a);
    }
    if (!fixture_run(g, 5 * PS_PER_S, true, fixture_failed))
        fail_msg("collective %d by %s, case %d goes unnoticed", kind, sched_algo_name(algo), d);
    for (unsigned r = 0; r < RANKS; r++) {
        const char *text = comm_error(g->comm[r]);

        if (!strstr(text, "rank ") ||
            (!strstr(text, "disagrees") && !strstr(text, "E_OP_MISMATCH")))
            fail_msg("collective %d by %s, case %d, rank %u: \"%s\"", kind, sched_algo_name(algo),
                     d, r, text);
        coll_free(req[r]);
    }
    fixture_free(g, true);
}

static void ranks_that_differ_all_fail_by_name(void **state)
{
    (void)state;
    for (enum coll_kind kind = 0; kind < COLL_KINDS; kind++)
        for (enum coll_algo algo = 0; algo < ALGO_COUNT; algo++)
            for (enum differs d = 0; d < DIFFERS; d++)
                if (sched_has(kind, algo) && (HOSTS | 1u << ALGO_SHARP) >> algo & 1)
                    disagree(kind, algo, d);
}

/* ---- communicators ---- */

static void a_policy_names_what_was_set_up(void **state)
{
    struct fixture *g = fixture_new(RANKS, 1, 4096, NULL);
    struct comm_cfg cfg = {.n_ctx = 1,
                           .ctx = &g->ctx[0],
                           .fab = g->fab,
                           .nranks = RANKS,
                           .host_of_rank = g->host_of_rank,
                           .algos = 1u << ALGO_RING,
                           .n_policy = 2,
                           .policy = {ALGO_RING, ALGO_SHARP}};
    char err[COMM_TEXT] = "", want[COMM_TEXT], blob[COMM_BLOB];
    struct comm *c;

    (void)state;
    assert_int_equal(comm_create(&c, &cfg, blob, err), -EINVAL);
    assert_string_equal(err, "policy: sharp at place 1 was not set up (comm_cfg.algos)");
    cfg.policy[1] = ALGO_DIRECT; /* the hosts' own need nothing to be set up */
    assert_int_equal(comm_create(&c, &cfg, blob, err), 0);
    comm_destroy(c);
    cfg.n_policy = ALGO_SCHEDULE + 1;
    assert_int_equal(comm_create(&c, &cfg, blob, err), -EINVAL);
    snprintf(want, sizeof(want), "a policy of %d algorithms: there are %d", ALGO_SCHEDULE + 1,
             ALGO_SCHEDULE);
    assert_string_equal(err, want);
    cfg.n_policy = ALGO_USUAL; /* all algorithms at once are allowed */
    for (unsigned i = 0; i < ALGO_USUAL; i++)
        cfg.policy[i] = (enum coll_algo)i;
    assert_int_equal(comm_create(&c, &cfg, blob, err), -EINVAL);
    assert_string_equal(err, "policy: sharp at place 1 was not set up (comm_cfg.algos)");
    cfg.n_policy = 1;
    cfg.policy[0] = ALGO_PROTOCOL_LAST; /* nobody sits there */
    assert_int_equal(comm_create(&c, &cfg, blob, err), -EINVAL);
    assert_string_equal(err, "policy: no such algorithm at place 0");
    cfg.n_policy = 0;
    assert_int_equal(comm_create(&c, &cfg, blob, err), 0);
    comm_destroy(c);
    fixture_connect(g, 1u << ALGO_RING, FIXTURE_RANKS);
    fixture_free(g, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_in_words_and_nothing_is_lost),
        cmocka_unit_test(there_is_no_such_collective),
        cmocka_unit_test(ranks_that_differ_all_fail_by_name),
        cmocka_unit_test(a_policy_names_what_was_set_up),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
