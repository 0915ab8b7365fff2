/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ranks become a communicator: what each option allows and chooses, who is told what when one fails, and when
 * the end of a rank's process is the communicator's.
 */
#include "tests/host/session/ranks.h"

#include "machine/shared.h"

#define LEN(a)  (sizeof(a) / sizeof((a)[0]))
#define BIT(a)  (1u << ALGO_##a)
#define BY_HOST (BIT(RING) | BIT(TREE) | BIT(CHAIN) | BIT(DIRECT) | BIT(PAIRWISE))

static int32_t input[RANKS][64], output[RANKS][64];

/* Drives both until both have ended, and drops the requests; the algorithm that has run. */
static const char *both_end(struct trib_request **req)
{
    const char *algo;

    for (unsigned ended = 0; ended != 3;)
        for (unsigned r = 0; r < RANKS; r++) {
            int rc;

            trib_progress(rank[r].comm);
            rc = trib_test(req[r]);
            if (rc < 0)
                fail_msg("rank %u: %s", r, trib_comm_error(rank[r].comm));
            ended |= (unsigned)rc << r;
        }
    algo = trib_request_algo(req[0]);
    assert_string_equal(trib_request_algo(req[1]), algo);
    for (unsigned r = 0; r < RANKS; r++)
        trib_free(req[r]);
    return algo;
}

static void barrier_of_both(void)
{
    struct trib_request *req[RANKS];

    for (unsigned r = 0; r < RANKS; r++)
        assert_int_equal(trib_barrier(rank[r].comm, &req[r], NULL), 0);
    both_end(req);
}

static const char *all_reduce(size_t count, enum trib_type type, int op)
{
    struct trib_request *req[RANKS];

    for (unsigned r = 0; r < RANKS; r++)
        if (trib_all_reduce(rank[r].comm, input[r], output[r], count, type, op, &req[r],
                            rank[r].err))
            fail_msg("rank %u: %s", r, rank[r].err);
    return both_end(req);
}

/* ---- options ---- */

static void options_say_what_is_set_up_and_in_which_order(void **state)
{
    static const struct {
        const char *option, *algo; /* of an all-reduce */
        unsigned algos, n, policy[2], trees;
    } rows[] = {
        {NULL, "sharp", BY_HOST | BIT(SHARP), 2, {ALGO_SHARP, ALGO_RING}, 1},
        {"sharp,ring", "sharp", BY_HOST | BIT(SHARP), 2, {ALGO_SHARP, ALGO_RING}, 1},
        {"ring,sharp", "ring", BY_HOST | BIT(SHARP), 2, {ALGO_RING, ALGO_SHARP}, 1},
        {"ring", "ring", BY_HOST, 1, {ALGO_RING}, 0},
        {"tree,ring", "tree", BY_HOST, 2, {ALGO_TREE, ALGO_RING}, 0},
        {"chain", "ring", BY_HOST, 1, {ALGO_CHAIN}, 0}, /* which has no all-reduce */
        {"halving", "halving", BY_HOST | BIT(HALVING), 1, {ALGO_HALVING}, 0},
        {"nvls,tree", "tree", BY_HOST, 1, {ALGO_TREE}, 0}, /* the fabric has no NVSwitch */
        {"nvls", "ring", BY_HOST, 1, {ALGO_RING}, 0},
    };
    char why[TRIB_TEXT];

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        ranks_open(rows[i].option);
        for (unsigned r = 0; r < RANKS; r++) {
            struct trib_comm *c = rank[r].comm;

            assert_int_equal(trib_comm_rank(c), r);
            assert_int_equal(trib_comm_size(c), RANKS);
            assert_string_equal(rank[r].err, "");
            assert_false(c->automatic);
            assert_int_equal(c->cfg.algos, rows[i].algos);
            assert_int_equal(c->cfg.n_policy, rows[i].n);
            for (unsigned k = 0; k < rows[i].n; k++)
                assert_int_equal(c->cfg.policy[k], rows[i].policy[k]);
            assert_int_equal(trib_comm_trees(c, why), rows[i].trees);
            assert_string_equal(why, rows[i].trees ? "switch0 has 16 slots for a group" : "");
            assert_string_equal(trib_comm_error(c), "");
            assert_string_equal(trib_comm_fell_back(c), "");
            assert_int_equal(c->cfg.group, rank[0].comm->cfg.group);
            assert_int_equal(c->cfg.key, rank[0].comm->cfg.key);
        }
        assert_string_equal(all_reduce(5, TRIB_INT32, TRIB_SUM), rows[i].algo);
        assert_int_equal(rank[0].comm->n_choices, 0);
        ranks_close();
    }
}

/* A prediction is made once for each kind, type, operation and count, of which the last CHOICES are known. */
static void automatic_choices_are_remembered(void **state)
{
    struct trib_comm *c;

    (void)state;
    ranks_open("auto");
    c = rank[0].comm;
    assert_true(c->automatic);
    assert_int_equal(c->cfg.algos, BY_HOST | BIT(SHARP) | BIT(HALVING));
    for (unsigned twice = 0; twice < 2; twice++) {
        all_reduce(5, TRIB_INT32, TRIB_SUM);
        all_reduce(6, TRIB_INT32, TRIB_SUM);
        all_reduce(5, TRIB_UINT32, TRIB_SUM);
        all_reduce(5, TRIB_INT32, TRIB_MAX);
        assert_int_equal(c->n_choices, 4);
    }
    barrier_of_both(); /* of which there is one, always */
    assert_int_equal(c->n_choices, 4);
    assert_int_equal(c->choice[0].kind, COLL_ALLREDUCE);
    assert_int_equal(c->choice[1].count, 6);
    assert_int_equal(c->choice[2].type, DT_UINT32);
    assert_int_equal(c->choice[3].op, OP_MAX);
    c->choice[0].algo = rank[1].comm->choice[0].algo = ALGO_TREE; /* what is known is taken */
    assert_string_equal(all_reduce(5, TRIB_INT32, TRIB_SUM), "tree");
    for (unsigned twice = 0; twice < 2; twice++)
        for (unsigned i = 4; i < CHOICES; i++)
            all_reduce(6 + i, TRIB_INT32, TRIB_SUM);
    assert_int_equal(c->n_choices, CHOICES);
    all_reduce(6 + CHOICES, TRIB_INT32, TRIB_SUM);
    assert_int_equal(c->n_choices, CHOICES + 1); /* the first has gone */
    assert_int_equal(c->choice[0].count, 6 + CHOICES);
    all_reduce(5, TRIB_INT32, TRIB_SUM);
    assert_int_equal(c->n_choices, CHOICES + 2);
    all_reduce(6, TRIB_INT32, TRIB_SUM);
    assert_int_equal(c->n_choices, CHOICES + 3);
    for (unsigned i = 0; i < CHOICES; i++)
        c->choice[i].kind = COLL_ALLGATHER; /* what is known of another kind is not taken */
    all_reduce(6, TRIB_INT32, TRIB_SUM);
    assert_int_equal(c->n_choices, CHOICES + 4);
    ranks_close();
}

/* ---- who fails, and who is told ---- */

static void one_rank_fails_with_its_reason_and_all_hear_it(void **state)
{
    static const struct {
        const char *algo;
        bool no_place;
        const char *says;
    } rows[] = {
        {"", false, "algo: found nothing, expected a list"},
        {",", false, "algo: found nothing, expected a list"},
        {"ring,tree,ring", false, "algo: found ring twice"},
        {"ring,schedule", false,
         "algo: found 'schedule', expected auto or a list of algorithms (trib perf -h)"},
        {"auto,ring", false,
         "algo: found 'auto', expected auto or a list of algorithms (trib perf -h)"},
        {"ring", true, "comm: found no place for the communicator"},
    };
    char says[TRIB_TEXT];

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++)
        for (unsigned bad = 0; bad < RANKS; bad++) {
            ranks_init("ring");
            rank[bad].algo = rows[i].algo;
            rank[bad].no_place = rows[i].no_place;
            ranks_meet();
            snprintf(says, sizeof(says), "rank %u: %s", bad, rows[i].says);
            assert_string_equal(rank[bad].err, rows[i].says);
            assert_string_equal(rank[!bad].err, says);
            for (unsigned r = 0; r < RANKS; r++) {
                assert_int_equal(rank[r].rc, -EINVAL);
                assert_null(rank[r].comm);
            }
        }
    ranks_init("ring,ring");
    rank[1].algo = "x";
    ranks_meet(); /* each has its own reason */
    assert_string_equal(rank[0].err, "algo: found ring twice");
    assert_string_equal(rank[1].err,
                        "algo: found 'x', expected auto or a list of algorithms (trib perf -h)");
}

/* Each of the calls out of band may fail: two for where the ranks are, three for their blobs, two for the outcome. */
static void calls_out_of_band_may_fail(void **state)
{
    static const int at[] = {0, 1, 5, 6};

    (void)state;
    for (unsigned i = 0; i < LEN(at); i++) {
        ranks_init("ring");
        rank[0].calls_left = rank[1].calls_left = at[i];
        ranks_meet();
        for (unsigned r = 0; r < RANKS; r++) {
            assert_int_equal(rank[r].rc, -EIO);
            assert_string_equal(rank[r].err, "an out-of-band call has failed");
            assert_null(rank[r].comm);
        }
    }
    ranks_init("ring");
    rank[0].calls_left = rank[1].calls_left = 7;
    ranks_meet();
    assert_int_equal(rank[0].rc + rank[1].rc, 0);
    assert_int_equal(rank[0].calls_left, 7 - 7); /* no call more */
    ranks_close();
    ranks_init("ring"); /* its own reason is the better one */
    rank[0].algo = rank[1].algo = "x";
    rank[0].calls_left = rank[1].calls_left = 0;
    ranks_meet();
    assert_int_equal(rank[0].rc, -EINVAL);
    assert_memory_equal(rank[0].err, "algo: found 'x'", 15);
}

/* ---- processes that end ---- */

#define LOOK  200000000LL
#define GONE  1000000000LL
#define GRACE 500000000LL

/* At another time than that of the clock; nothing else looks meanwhile. */
static void look_at(struct trib_comm *c, int64_t now)
{
    c->looked_ns = now - LOOK;
    deaths_look(c, now, 40);
}

static void a_process_that_has_ended_ends_the_communicator(void **state)
{
    const int64_t t = 1000000000000000LL, patience = GONE + 40 * 50000;
    struct process_id was;
    struct trib_comm *c;
    char text[TRIB_TEXT];

    (void)state;
    ranks_open("ring");
    c = rank[0].comm;
    was = c->process[1];
    assert_true(liveness_sees(&was));
    assert_int_equal(c->process[0].space, 0); /* nobody looks for himself */
    look_at(c, t);
    assert_int_equal(c->gone_ns, 0);
    c->process[1].start ^= 1; /* another process has the number now */
    c->looked_ns = t - LOOK + 1;
    deaths_look(c, t, 40); /* too early for a look */
    assert_int_equal(c->gone_ns, 0);
    look_at(c, t);
    assert_int_equal(c->looked_ns, t);
    assert_int_equal(c->gone_ns, t);
    assert_int_equal(c->gone, 1);
    look_at(c, t + patience);
    assert_int_equal(comm_state(c->comm), COMM_READY);
    assert_int_equal(c->gone_ns, t);
    c->process[1] = was; /* it was another's end */
    look_at(c, t + patience + 1);
    assert_int_equal(c->gone_ns, 0);
    assert_int_equal(comm_state(c->comm), COMM_READY);
    c->process[1].start ^= 1;
    look_at(c, t + 1);
    c->process[1].space = 0; /* one that is not seen is not looked for */
    look_at(c, t + 2);
    assert_int_equal(c->gone_ns, 0);
    c->process[1].space = was.space;
    look_at(c, t);
    look_at(c, t + patience + 1);
    assert_int_equal(comm_state(c->comm), COMM_FAILED);
    deaths_error(c, text, sizeof(text));
    assert_string_equal(text, "rank 1 (h1): its process has ended");
    assert_string_equal(trib_comm_error(c), text);
    snprintf(c->lost, sizeof(c->lost), "its process");
    deaths_error(c, text, sizeof(text)); /* which is said already */
    assert_string_equal(text, "rank 1 (h1): its process has ended");
    snprintf(c->lost, sizeof(c->lost), "trib-switch s has ended");
    deaths_error(c, text, sizeof(text));
    assert_string_equal(
        text, "trib-switch s has ended; noticed first: rank 1 (h1): its process has ended");
    *c->lost = 0;
    ranks_close();
}

/* Operations fail once it is known what has ended, or once there was time to find out. */
static void failures_wait_for_their_reason(void **state)
{
    const int64_t t = 1000000000000000LL;
    struct trib_request *req;
    struct trib_comm *c;

    (void)state;
    for (unsigned known = 0; known < 2; known++) {
        ranks_open("ring");
        c = rank[0].comm;
        assert_int_equal(trib_barrier(c, &req, NULL), 0);
        if (known)
            snprintf(c->lost, sizeof(c->lost), "trib-switch s has ended");
        else
            comm_abort(c->comm, "enough");
        look_at(c, t);
        assert_int_equal(comm_state(c->comm), COMM_FAILED);
        assert_int_equal(c->failed_ns, known ? 0 : t);
        assert_false(c->settled);
        look_at(c, t + GRACE);
        assert_int_equal(c->failed_ns, known ? t + GRACE : t);
        assert_int_equal(c->settled, known);
        look_at(c, t + GRACE + 1);
        assert_true(c->settled);
        assert_true(trib_test(req) < 0);
        assert_string_equal(trib_comm_error(c), known ? "trib-switch s has ended" : "enough");
        ranks_close();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_say_what_is_set_up_and_in_which_order),
        cmocka_unit_test(automatic_choices_are_remembered),
        cmocka_unit_test(one_rank_fails_with_its_reason_and_all_hear_it),
        cmocka_unit_test(calls_out_of_band_may_fail),
        cmocka_unit_test(a_process_that_has_ended_ends_the_communicator),
        cmocka_unit_test(failures_wait_for_their_reason),
    };

    return cmocka_run_group_tests_name("session/meeting", tests, fabric_start, live_fabric_stop);
}
