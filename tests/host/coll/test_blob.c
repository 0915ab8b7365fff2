/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks tell each other before they connect: which blobs are accepted, and which are refused
 * with which words. */
#include "tests/host/coll/coll_fixture.h"

#include "host/coll/comm.h"

#include <errno.h>

#define RANKS 3u

/* Communicators that have not connected; the blob of each. */
static struct fixture *created(void)
{
    struct fixture *g = fixture_new(RANKS, 1, 4096, NULL);

    fixture_create(g, 1u << ALGO_RING, FIXTURE_RANKS);
    for (unsigned r = 0; r < RANKS; r++) { /* as comm_connect() makes them */
        g->comm[r]->ctl.peer = calloc(RANKS, sizeof(*g->comm[r]->ctl.peer));
        assert_non_null(g->comm[r]->ctl.peer);
    }
    return g;
}

static void drop(struct fixture *g)
{
    free(g->blobs);
    fixture_free(g, true);
}

/* Its datagrams' queue pair, at the port and address that the fabric gives it. */
static void a_blob_says_where_a_rank_is(void **state)
{
    struct fixture *g = fixture_new(RANKS, 1, 4096, NULL);

    (void)state;
    fixture_connect(g, 1u << ALGO_RING, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    for (unsigned r = 0; r < RANKS; r++) {
        const struct fab_node *h = &g->fab->nodes[g->fab->hosts[r]];
        const struct peer *p = &g->comm[0]->ctl.peer[r];
        union ibv_gid gid;

        gid_of_ip(&gid, h->ip_of_port[0]);
        assert_int_equal(p->port, 0);
        assert_int_equal(p->qpn, g->comm[r]->ctl.port[0].qp->qp_num);
        assert_memory_equal(&p->gid, &gid, sizeof(gid));
    }
    fixture_free(g, false);
}

enum differs { MAGIC, VERSION, RANK, MTU, ALGOS, POLICY, JOB, FIELDS };

/* Where a field of the message begins, and its length. */
static const struct {
    unsigned at, bytes;
    const char *says;
} fields[FIELDS] = {
    [MAGIC] = {0, 4, "speaks another version"},
    [VERSION] = {4, 4, "speaks another version"},
    [RANK] = {8, 4, "gave another rank's data"},
    [MTU] = {12, 4, "has another MTU"},
    [ALGOS] = {16, 4, "has set up other algorithms"},
    [POLICY] = {20, 8, "has another policy"},
    [JOB] = {28, 8, "is in another group, or has another key"},
};

static void every_bit_of_a_configuration_counts(void **state)
{
    struct fixture *g = created();

    (void)state;
    for (enum differs d = 0; d < FIELDS; d++)
        for (unsigned bit = 0; bit < 8 * fields[d].bytes; bit++) {
            uint8_t blob[COMM_BLOB];
            char err[COMM_TEXT] = "", want[COMM_TEXT];

            memcpy(blob, g->blobs + COMM_BLOB, sizeof(blob));
            blob[fields[d].at + bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(blob_take(g->comm[0], 1, blob, err), -EPROTO);
            snprintf(want, sizeof(want), "rank 1 (h1) %s", fields[d].says);
            assert_string_equal(err, want);
            assert_int_equal(g->comm[0]->ctl.peer[1].qpn, 0); /* nothing of it is taken */
        }
    drop(g);
}

static void what_is_not_said_is_zero(void **state)
{
    struct fixture *g = created();
    uint8_t blob[COMM_BLOB], none[COMM_BLOB] = {0};

    (void)state;
    memset(blob, 0xff, sizeof(blob));
    blob_write(g->comm[1], blob);
    assert_memory_equal(blob, g->blobs + COMM_BLOB, sizeof(blob));
    assert_memory_equal(blob + 200, none, sizeof(blob) - 200);
    drop(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_blob_says_where_a_rank_is),
        cmocka_unit_test(every_bit_of_a_configuration_counts),
        cmocka_unit_test(what_is_not_said_is_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
