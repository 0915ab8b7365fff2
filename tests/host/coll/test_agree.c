/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks compare of an operation, and in what words they differ. */
#include "tests/host/coll/coll_fixture.h"

#include "host/coll/comm.h"

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

/* Ranks may differ in arguments that the collective does not use. */
static void arguments_without_a_use_are_left_out(void **state)
{
    (void)state;
    for (enum coll_kind k = 0; k < COLL_KINDS; k++) {
        const bool data = k != COLL_BARRIER;
        const struct coll_args a = {.kind = k,
                                    .algo = ALGO_DIRECT,
                                    .count = 9,
                                    .type = DT_INT32,
                                    .op = OP_MAX,
                                    .root = 3,
                                    .sparse = 2};
        const struct op_id id = op_id_of(&a, 77);

        assert_int_equal(id.seq, 77);
        assert_int_equal(id.kind, k);
        assert_int_equal(id.algo, ALGO_DIRECT);
        assert_int_equal(id.count, data ? 9 : 0);
        assert_int_equal(id.type, data ? DT_INT32 : 0);
        assert_int_equal(id.op, coll_reduces(k) ? OP_MAX : 0);
        assert_int_equal(id.root, coll_rooted(k) ? 3 : 0);
        assert_int_equal(id.sparse, k == COLL_ALLTOALL ? 2 : 0);
        assert_int_equal(id.file, 0);
    }
}

/* Number 8 bits, collective 4, type 4, reduction 4, root 4 of 12 folded, the rest 8. */
static void a_tag_has_a_field_for_each_argument(void **state)
{
    static const struct {
        struct op_id id;
        uint32_t tag;
    } rows[] = {
        {{.seq = 0}, 0},
        {{.seq = 1}, 0x01000000},
        {{.seq = 255}, 0xff000000},
        {{.seq = 256}, 0},
        {{.kind = COLL_KINDS - 1}, (uint32_t)(COLL_KINDS - 1) << 20},
        {{.type = DT_COUNT - 1}, (uint32_t)(DT_COUNT - 1) << 16},
        {{.op = OP_COUNT - 1}, (uint32_t)(OP_COUNT - 1) << 12},
        {{.root = 1}, 0x100},
        {{.root = 15}, 0xf00},
        {{.root = 0x10}, 0x100},
        {{.root = 0x100}, 0x100},
        {{.root = 0x3a5}, (3 ^ 0xa ^ 5) << 8},
        {{.seq = 0x212, .kind = 3, .type = 2, .op = 1, .root = 7}, 0x12321700},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++)
        assert_int_equal(op_tag(&rows[i].id), rows[i].tag);
}

/* The last 8 bits: all algorithms, few blocks, neighbouring sizes and files differ in them, and nothing else does. */
static void a_tag_tells_sizes_and_algorithms_apart(void **state)
{
    bool seen[256] = {false};
    unsigned same = 0;

    (void)state;
    for (enum coll_algo a = 0; a < ALGO_COUNT; a++) {
        uint32_t tag = op_tag(&(struct op_id){.algo = a});

        assert_true(tag < 256 && !seen[tag]);
        seen[tag] = true;
    }
    for (unsigned k = 1; k < 1000; k++) {
        const uint32_t count = op_tag(&(struct op_id){.count = k}),
                       sparse = op_tag(&(struct op_id){.sparse = k}),
                       file = op_tag(&(struct op_id){.file = k});

        assert_true(count < 256 && sparse < 256 && file < 256);
        same += !count + !sparse + !file;
        assert_int_not_equal(count, op_tag(&(struct op_id){.count = k + 1}));
    }
    assert_true(same < 30); /* of 3000 a 256th is 12 */
}

static void the_last_operations_are_known(void **state)
{
    struct comm *c = calloc(1, sizeof(*c));

    (void)state;
    assert_non_null(c);
    assert_null(op_known(c, 0));
    for (uint32_t n = 1; n <= 3 * OPS_KNOWN; n++) {
        c->known[(n - 1) % OPS_KNOWN] = (struct op_id){.seq = n - 1, .count = n};
        c->exec.opseq = n;
        for (uint32_t seq = 0; seq < n + 2; seq++) {
            const struct op_id *id = op_known(c, seq);
            bool known = seq < n && seq + OPS_KNOWN >= n;

            assert_int_equal(id != NULL, known);
            assert_true(!id || (id->seq == seq && id->count == seq + 1));
        }
    }
    free(c);
}

/* Rank 0 runs this as its operation number 2, of 4. */
static const struct op_id mine = {.seq = 2,
                                  .kind = COLL_REDUCE,
                                  .algo = ALGO_TREE,
                                  .type = DT_FP32,
                                  .op = OP_SUM,
                                  .root = 1,
                                  .count = 100};

static struct fixture *running(void)
{
    struct fixture *g = fixture_new(2, 1, 4096, NULL);
    struct comm *c;

    fixture_connect(g, 1u << ALGO_RING, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    c = g->comm[0];
    c->exec.opseq = 4;
    c->exec.next_seq = 3; /* number 2 was the last that ran */
    for (uint32_t i = 0; i < 4; i++) {
        c->known[i] = mine;
        c->known[i].seq = i;
    }
    return g;
}

/* What rank 0 says of rank 1, and nothing else. */
static void ends_with(struct fixture *g, const char *says)
{
    char want[COMM_TEXT];

    snprintf(want, sizeof(want), "rank 1 (h1) disagrees on %s", says);
    assert_string_equal(comm_error(g->comm[0]), *says ? want : "");
    assert_int_equal(comm_state(g->comm[0]), *says ? COMM_FAILED : COMM_READY);
    g->comm[0]->exec.opseq = g->comm[0]->exec.next_seq = 0;
    fixture_free(g, true);
}

static void another_tag_names_what_differs(void **state)
{
    static const struct {
        struct op_id id;
        const char *says;
    } rows[] = {
        {{3, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 100},
         "which operation runs: number 3, and 2 at rank 0"},
        {{1, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 100},
         "which operation runs: number 1, and 2 at rank 0"},
        {{200, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 100},
         "which operation runs: number 200, and 2 at rank 0"},
        {{2, COLL_GATHER, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 100},
         "the collective: gather, and reduce at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_INT32, OP_SUM, 1, 0, 0, 100},
         "the type: int32, and float at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_MAX, 1, 0, 0, 100},
         "the reduction: max, and sum at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 0, 0, 0, 100},
         "the root: not 1 as at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 101},
         "the size or the algorithm: not 100 elements by tree as at rank 0"},
        {{2, COLL_REDUCE, ALGO_RING, DT_FP32, OP_SUM, 1, 0, 0, 100},
         "the size or the algorithm: not 100 elements by tree as at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 100},
         "the size: it sent more in reduce than rank 0 expects"},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct fixture *g = running();

        op_disagree(g->comm[0], 1, op_tag(&rows[i].id));
        ends_with(g, rows[i].says);
    }
}

/* As in agree.c. */
struct op_msg {
    struct ctl_head head;
    rte_be32_t seq, kind, algo, type, op, root, sparse, file;
    rte_be64_t count;
} __attribute__((packed));

static void a_full_description_names_what_differs(void **state)
{
    static const struct {
        struct op_id id;
        const char *says;
    } rows[] = {
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 100}, ""},
        {{0, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 100}, ""},
        {{4, COLL_GATHER, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 7}, ""}, /* not known here yet */
        {{258, COLL_GATHER, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 7}, ""},
        {{1, COLL_SCATTER, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 100},
         "the collective: scatter, and reduce at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP64, OP_SUM, 1, 0, 0, 100},
         "the type: double, and float at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_MIN, 1, 0, 0, 100},
         "the reduction: min, and sum at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 0, 0, 0, 100},
         "the root: 0, and 1 at rank 0"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 0, 1ull << 33},
         "the size: 8589934592 elements, and 100 at rank 0"},
        {{2, COLL_REDUCE, ALGO_RING, DT_FP32, OP_SUM, 1, 0, 0, 100}, "the algorithm"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 1, 0, 100}, "the algorithm"},
        {{2, COLL_REDUCE, ALGO_TREE, DT_FP32, OP_SUM, 1, 0, 5, 100}, "the schedule's file"},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++)
        for (unsigned less = 0; less < 2; less++) {
            struct fixture *g = running();
            const struct op_id *id = &rows[i].id;
            const struct op_msg m = {.head.magic = rte_cpu_to_be_32(OP_MAGIC),
                                     .seq = rte_cpu_to_be_32(id->seq),
                                     .kind = rte_cpu_to_be_32(id->kind),
                                     .algo = rte_cpu_to_be_32(id->algo),
                                     .type = rte_cpu_to_be_32(id->type),
                                     .op = rte_cpu_to_be_32(id->op),
                                     .root = rte_cpu_to_be_32(id->root),
                                     .sparse = rte_cpu_to_be_32(id->sparse),
                                     .file = rte_cpu_to_be_32(id->file),
                                     .count = rte_cpu_to_be_64(id->count)};

            op_input(g->comm[0], 1, &m, sizeof(m) - less); /* what is cut short says nothing */
            ends_with(g, less ? "" : rows[i].says);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_without_a_use_are_left_out),
        cmocka_unit_test(a_tag_has_a_field_for_each_argument),
        cmocka_unit_test(a_tag_tells_sizes_and_algorithms_apart),
        cmocka_unit_test(the_last_operations_are_known),
        cmocka_unit_test(another_tag_names_what_differs),
        cmocka_unit_test(a_full_description_names_what_differs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
