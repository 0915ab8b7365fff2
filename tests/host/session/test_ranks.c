/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of two ranks: what each buffer holds after every collective, what memory and requests are left, and what
 * is refused, with the bytes that each buffer needs.
 */
#include "tests/host/session/ranks.h"

#define COUNT  5u
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

enum {
    ALL_REDUCE,
    REDUCE,
    REDUCE_SCATTER,
    BROADCAST,
    ALL_GATHER,
    GATHER,
    SCATTER,
    ALL_TO_ALL,
    BARRIER,
    KINDS
};

static int begin(int kind, unsigned r, const void *send, void *recv, uint32_t root,
                 struct trib_request **req)
{
    struct trib_comm *c = rank[r].comm;
    char *err = rank[r].err;

    *err = 0;
    switch (kind) {
    case ALL_REDUCE:
        return trib_all_reduce(c, send, recv, COUNT, TRIB_INT32, TRIB_SUM, req, err);
    case REDUCE:
        return trib_reduce(c, send, recv, COUNT, TRIB_INT32, TRIB_SUM, root, req, err);
    case REDUCE_SCATTER:
        return trib_reduce_scatter(c, send, recv, COUNT, TRIB_INT32, TRIB_SUM, req, err);
    case BROADCAST:
        return trib_broadcast(c, recv, COUNT, TRIB_INT32, root, req, err);
    case ALL_GATHER:
        return trib_all_gather(c, send, recv, COUNT, TRIB_INT32, req, err);
    case GATHER:
        return trib_gather(c, send, recv, COUNT, TRIB_INT32, root, req, err);
    case SCATTER:
        return trib_scatter(c, send, recv, COUNT, TRIB_INT32, root, req, err);
    case ALL_TO_ALL:
        return trib_all_to_all(c, send, recv, COUNT, TRIB_INT32, req, err);
    default:
        return trib_barrier(c, req, err);
    }
}

/* Drives both, until both have ended. */
static void both_end(struct trib_request **req)
{
    for (unsigned ended = 0; ended != 3;)
        for (unsigned r = 0; r < RANKS; r++) {
            int rc = trib_test(req[r]);

            if (rc < 0)
                fail_msg("rank %u: %s", r, trib_comm_error(rank[r].comm));
            ended |= (unsigned)rc << r;
        }
}

/* ---- results ---- */

static int32_t input[RANKS][2 * COUNT], output[RANKS][2 * COUNT];

/* Element i of what rank r sends. */
static int32_t of(unsigned r, unsigned i)
{
    return (int32_t)(1000 * (r + 1) + i * i);
}

static int32_t sum_of(unsigned i)
{
    return of(0, i) + of(1, i);
}

/* Element i of rank r's output with root 1; -1: it is not written. */
static int32_t expected(int kind, unsigned r, unsigned i)
{
    switch (kind) {
    case ALL_REDUCE:
        return i < COUNT ? sum_of(i) : -1;
    case REDUCE:
        return r == 1 && i < COUNT ? sum_of(i) : -1;
    case REDUCE_SCATTER:
        return i < COUNT ? sum_of(r * COUNT + i) : -1;
    case BROADCAST:
        return i < COUNT ? of(1, i) : -1;
    case ALL_GATHER:
        return of(i / COUNT, i % COUNT);
    case GATHER:
        return r == 1 ? of(i / COUNT, i % COUNT) : -1;
    case SCATTER:
        return i < COUNT ? of(1, r * COUNT + i) : -1;
    case ALL_TO_ALL:
        return of(i / COUNT, r * COUNT + i % COUNT);
    default:
        return -1;
    }
}

static void prepare(int kind)
{
    for (unsigned r = 0; r < RANKS; r++)
        for (unsigned i = 0; i < 2 * COUNT; i++) {
            input[r][i] = of(r, i);
            output[r][i] = kind == BROADCAST && r == 1 && i < COUNT ? of(1, i) : -1;
        }
}

/* What a rank has no use for is NULL. */
static bool sends(int kind, unsigned r)
{
    return kind != BARRIER && kind != BROADCAST && (kind != SCATTER || r == 1);
}

static bool gets(int kind, unsigned r)
{
    return kind != BARRIER && ((kind != REDUCE && kind != GATHER) || r == 1);
}

static unsigned borrowed(unsigned r)
{
    unsigned n = 0;

    for (const struct borrowed *b = rank[r].comm->borrowed; b; b = b->next)
        n++;
    return n;
}

static void every_collective_moves_what_it_says(void **state)
{
    struct trib_request *req[RANKS];

    (void)state;
    ranks_open("ring");
    for (int kind = 0; kind < KINDS; kind++) {
        prepare(kind);
        for (unsigned r = 0; r < RANKS; r++)
            if (begin(kind, r, sends(kind, r) ? input[r] : NULL, gets(kind, r) ? output[r] : NULL,
                      1, &req[r]))
                fail_msg("%d at %u: %s", kind, r, rank[r].err);
        for (unsigned r = 0; r < RANKS; r++) /* each buffer once, for as long as it runs */
            assert_int_equal(borrowed(r), sends(kind, r) + gets(kind, r));
        both_end(req);
        for (unsigned r = 0; r < RANKS; r++) {
            for (unsigned i = 0; i < 2 * COUNT; i++)
                if (output[r][i] != expected(kind, r, i) || input[r][i] != of(r, i))
                    fail_msg("%d at %u: element %u is %d", kind, r, i, output[r][i]);
            assert_null(rank[r].comm->borrowed);
            assert_ptr_equal(rank[r].comm->ops, req[r]);
            assert_int_equal(trib_wait(req[r]), 0);
            assert_int_equal(trib_wait_for(req[r], 0), 1);
            assert_string_not_equal(trib_request_algo(req[r]), "");
            if (kind == ALL_REDUCE)
                assert_string_equal(trib_request_algo(req[r]), "ring");
            trib_free(req[r]);
            assert_null(rank[r].comm->ops);
        }
    }
    ranks_close();
}

/* ---- requests and memory ---- */

/* A request that is freed goes on, and its communicator forgets it at its end. */
static void requests_may_be_freed_while_they_run(void **state)
{
    struct trib_request *first, *req[RANKS];

    (void)state;
    ranks_open("ring");
    prepare(ALL_REDUCE);
    assert_int_equal(begin(ALL_REDUCE, 0, input[0], output[0], 0, &first), 0);
    assert_int_equal(trib_test(first), 0); /* rank 1 is not there yet */
    assert_int_equal(trib_wait_for(first, 0), 0);
    assert_int_equal(borrowed(0), 2);
    trib_free(first);
    trib_free(first); /* once more, and nothing */
    assert_ptr_equal(rank[0].comm->ops, first);
    assert_int_equal(begin(BARRIER, 0, NULL, NULL, 0, &req[0]), 0);
    assert_int_equal(begin(ALL_REDUCE, 1, input[1], output[1], 0, &first), 0);
    assert_int_equal(begin(BARRIER, 1, NULL, NULL, 0, &req[1]), 0);
    both_end(req);
    assert_ptr_equal(rank[0].comm->ops, req[0]);
    assert_int_equal(trib_test(first), 1);
    trib_free(req[1]); /* the last that was begun, and the one before it stays */
    assert_ptr_equal(rank[1].comm->ops, first);
    for (unsigned r = 0; r < RANKS; r++)
        for (unsigned i = 0; i < COUNT; i++)
            assert_int_equal(output[r][i], sum_of(i));
    assert_int_equal(borrowed(0) + borrowed(1), 0);
    ranks_close(); /* with a request each, which goes with its communicator */
}

/* Memory of the program's is not given back while an operation uses it, and is not borrowed. */
static void registered_memory_stays_while_it_is_used(void **state)
{
    struct trib_request *req[RANKS];

    (void)state;
    ranks_open("ring");
    prepare(ALL_REDUCE);
    assert_int_equal(trib_register(input, sizeof(input)), 0);
    assert_int_equal(begin(ALL_REDUCE, 0, input[0], output[0], 0, &req[0]), 0);
    assert_int_equal(borrowed(0), 1); /* the output */
    assert_int_equal(trib_deregister(input), -EBUSY);
    assert_int_equal(begin(ALL_REDUCE, 1, input[1], output[1], 0, &req[1]), 0);
    both_end(req);
    assert_int_equal(borrowed(0) + borrowed(1), 0);
    assert_int_equal(trib_deregister(input), 0);
    assert_int_equal(trib_deregister(input), -ENOENT);
    for (unsigned r = 0; r < RANKS; r++)
        trib_free(req[r]);
    ranks_close();
}

/* ---- what is refused ---- */

#define ONE (COUNT * 4)
#define ALL (2 * ONE)

static void buffers_are_asked_for_with_their_bytes(void **state)
{
    static const struct {
        int kind;
        unsigned rank, send, recv; /* bytes with root 1; 0: none is needed */
    } rows[] = {
        {ALL_REDUCE, 0, ONE, ONE}, {ALL_REDUCE, 1, ONE, ONE},     {REDUCE, 0, ONE, 0},
        {REDUCE, 1, ONE, ONE},     {REDUCE_SCATTER, 0, ALL, ONE}, {REDUCE_SCATTER, 1, ALL, ONE},
        {ALL_GATHER, 0, ONE, ALL}, {ALL_GATHER, 1, ONE, ALL},     {GATHER, 0, ONE, 0},
        {GATHER, 1, ONE, ALL},     {SCATTER, 0, 0, ONE},          {SCATTER, 1, ALL, ONE},
        {ALL_TO_ALL, 0, ALL, ALL}, {ALL_TO_ALL, 1, ALL, ALL},
    };
    struct trib_request *req = NULL;
    char says[TRIB_TEXT];

    (void)state;
    ranks_open("ring");
    for (unsigned i = 0; i < LEN(rows); i++) {
        unsigned r = rows[i].rank;

        for (unsigned recv = 0; recv < 2; recv++) {
            unsigned bytes = recv ? rows[i].recv : rows[i].send;

            if (!bytes)
                continue;
            snprintf(says, sizeof(says), "%s: found no buffer, expected one of %u bytes",
                     recv ? "recv" : "send", bytes);
            assert_int_equal(
                begin(rows[i].kind, r, recv ? input[r] : NULL, recv ? NULL : output[r], 1, &req),
                -EINVAL);
            assert_string_equal(rank[r].err, says);
        }
    }
    for (unsigned r = 0; r < RANKS; r++) { /* one buffer: an input of the root, else an output */
        assert_int_equal(begin(BROADCAST, r, NULL, NULL, 1, &req), -EINVAL);
        snprintf(says, sizeof(says), "%s: found no buffer, expected one of %u bytes",
                 r == 1 ? "send" : "recv", ONE);
        assert_string_equal(rank[r].err, says);
        assert_null(rank[r].comm->ops);
        assert_null(rank[r].comm->borrowed);
    }
    assert_null(req);
    ranks_close();
}

static void arguments_are_checked_before_anything_else(void **state)
{
    static const struct {
        int type, op;
        const char *says;
    } rows[] = {
        {TRIB_ALL_TYPES, TRIB_SUM, "found type %d and reduction %d, expected public ones"},
        {-1, TRIB_SUM, "found type %d and reduction %d, expected public ones"},
        {TRIB_INT32, TRIB_LXOR + 1, "found type %d and reduction %d, expected public ones"},
        {TRIB_INT32, -1, "found type %d and reduction %d, expected public ones"},
    };
    struct trib_request *req = NULL;
    struct trib_comm *c;
    char err[TRIB_TEXT], says[TRIB_TEXT];

    (void)state;
    ranks_open("ring");
    c = rank[0].comm;
    for (unsigned i = 0; i < LEN(rows); i++) {
        snprintf(says, sizeof(says), rows[i].says, rows[i].type, rows[i].op);
        assert_int_equal(trib_all_reduce(c, input, output, 1, (enum trib_type)rows[i].type,
                                         rows[i].op, &req, err),
                         -EINVAL);
        assert_string_equal(err, says);
    }
    snprintf(says, sizeof(says), "found %zu elements, expected fewer", SIZE_MAX / 32 + 1);
    assert_int_equal(
        trib_all_reduce(c, input, output, SIZE_MAX / 32 + 1, TRIB_INT8, TRIB_SUM, &req, err),
        -EINVAL);
    assert_string_equal(err, says);
    assert_int_equal(
        trib_all_reduce(c, NULL, output, SIZE_MAX / 32, TRIB_INT8, TRIB_SUM, &req, err), -EINVAL);
    snprintf(says, sizeof(says), "send: found no buffer, expected one of %zu bytes", SIZE_MAX / 32);
    assert_string_equal(err, says);
    assert_int_equal(trib_barrier(c, NULL, err), -EINVAL);
    assert_string_equal(err, "req: found no place for the request");
    assert_int_equal(trib_all_reduce(c, (void *)8, output, 2, TRIB_INT32, TRIB_SUM, &req, err),
                     -EFAULT);
    assert_string_equal(err, "cannot register 8 bytes at 0x8: Bad address, expected memory that is "
                             "mapped, and writable for results");
    assert_null(c->borrowed);
    assert_null(c->ops);
    assert_null(req);
    ranks_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_moves_what_it_says),
        cmocka_unit_test(requests_may_be_freed_while_they_run),
        cmocka_unit_test(registered_memory_stays_while_it_is_used),
        cmocka_unit_test(buffers_are_asked_for_with_their_bytes),
        cmocka_unit_test(arguments_are_checked_before_anything_else),
    };

    return cmocka_run_group_tests_name("session/ranks", tests, fabric_start, live_fabric_stop);
}
