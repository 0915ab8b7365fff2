/* Schedules are right: interpreted in memory, without verbs, for any number of ranks and elements,
 * against a plain reference. */
#include "tests/host/coll/interp.h"

#include <errno.h>
#include <stdio.h>

/* A fabric as algorithms see it: ranks in domains of so many (0: none), and planes in them. */
struct shape {
    unsigned domain; /* ranks of one */
    unsigned planes; /* channels within a domain */
    unsigned trees;
    bool deal; /* ranks are dealt to domains in turn, not in blocks */
};

struct row {
    enum coll_kind kind;
    enum coll_algo algo;
    unsigned n, root;
    uint64_t count;
    enum dtype type;
    enum redop op;
    bool in_place, mm_self;
    unsigned sparse;
    uint32_t mtu;
    struct shape shape;
};

static const uint64_t plane_rate[4] = {5, 4, 4, 5};
static uint16_t domains[INTERP_RANKS];
static struct shape current;

static unsigned channels(void *ctx, unsigned a, unsigned b, uint64_t *rate, unsigned max)
{
    (void)ctx;
    assert_true(max >= 4);
    if (domains[a] != domains[b] || current.planes < 2) {
        rate[0] = 2;
        return 1;
    }
    memcpy(rate, plane_rate, sizeof(plane_rate));
    return current.planes;
}

static struct sched_topo topo_of(const struct row *w)
{
    unsigned per = w->shape.domain ? w->shape.domain : 1, n = (w->n + per - 1) / per;

    current = w->shape;
    for (unsigned r = 0; r < w->n; r++)
        domains[r] = (uint16_t)(w->shape.deal ? r % n : r / per);
    return (struct sched_topo){.domain = domains,
                               .channels = channels,
                               .trees = w->shape.trees,
                               .rail_trees = w->shape.trees,
                               .multimem = w->shape.domain > 1};
}

static struct sched_in in_of(const struct row *w, const struct sched_topo *t, unsigned rank)
{
    return (struct sched_in){.kind = w->kind,
                             .algo = w->algo,
                             .rank = rank,
                             .nranks = w->n,
                             .root = w->root,
                             .count = w->count,
                             .type = w->type,
                             .op = w->op,
                             .in_place = w->in_place,
                             .mtu = w->mtu,
                             .sparse = w->sparse,
                             .mm_self = w->mm_self,
                             .topo = t};
}

static const char *row_name(const struct row *w)
{
    static const char *const kind[] = {"all_reduce",     "reduce",   "broadcast", "all_gather",
                                       "reduce_scatter", "alltoall", "gather",    "scatter",
                                       "sendrecv",       "barrier"};
    static char text[200];

    snprintf(text, sizeof(text),
             "%s %s, %u ranks, root %u, %lu of %s%s, mtu %u, domains of %u%s, %u planes, sparse %u",
             kind[w->kind], sched_algo_name(w->algo), w->n, w->root, w->count, dtype_name(w->type),
             w->in_place ? " in place" : "", w->mtu, w->shape.domain, w->shape.deal ? " dealt" : "",
             w->shape.planes, w->sparse);
    return text;
}

/* Element i of rank's contribution: small, so that sums of floats are exact. */
static void put_value(uint8_t *p, enum dtype t, uint64_t i, unsigned rank)
{
    int v = (int)((i * 31 + rank * 17 + i / 251) % 13) - 4;

    if (t == DT_INT32)
        ((int32_t *)(void *)p)[i] = v * 1000003;
    else if (t == DT_FP32)
        ((float *)(void *)p)[i] = (float)v;
    else if (t == DT_FP64)
        ((double *)(void *)p)[i] = v;
    else
        p[i] = (uint8_t)v;
}

static uint8_t *make_input(const struct row *w, uint64_t bytes, unsigned rank)
{
    unsigned size = dtype_size(w->type);
    uint8_t *p = calloc(1, bytes + 8);

    for (uint64_t i = 0; i < bytes / size; i++)
        put_value(p, w->type, i, rank);
    return p;
}

/* What rank r has to have in its receive buffer; bytes that nobody may touch stay 0xa5. */
static uint8_t *expected(const struct row *w, uint8_t *const *in, uint64_t bytes, unsigned r)
{
    uint64_t one = w->count * dtype_size(w->type),
             off = w->kind == COLL_REDUCE_SCATTER ? r * one : 0;
    const void *all[INTERP_RANKS];
    uint8_t *p = malloc(bytes + 8);

    memset(p, 0xa5, bytes + 8);
    if (!bytes)
        return p;
    switch (w->kind) {
    case COLL_ALLREDUCE:
    case COLL_REDUCE:
    case COLL_REDUCE_SCATTER:
        for (unsigned k = 0; k < w->n; k++)
            all[k] = in[k] + off;
        arith_scalar(w->op, w->type)(p, all, w->n, w->count);
        if (w->op == OP_AVG)
            arith_divide(p, w->type, w->n, w->count);
        break;
    case COLL_BROADCAST:
        memcpy(p, in[w->root], one);
        break;
    case COLL_SCATTER:
        memcpy(p, in[w->root] + r * one, one);
        break;
    case COLL_SENDRECV:
        memcpy(p, in[(r + w->n - 1) % w->n], one);
        break;
    case COLL_ALLTOALL:
        for (unsigned k = 0; k < w->n; k++)
            if (!w->sparse || (r + w->n - k) % w->n < w->sparse)
                memcpy(p + k * one, in[k] + r * one, one);
        break;
    default:
        for (unsigned k = 0; k < w->n; k++)
            memcpy(p + k * one, in[k], one);
        break;
    }
    return p;
}

/* Memory of a rank; in place the two buffers are one. */
static void give_memory(const struct row *w, struct irank *r, unsigned rank, const uint8_t *input)
{
    uint64_t own = rank * w->count * dtype_size(w->type), in = r->s.in_bytes, out = r->s.out_bytes;
    bool gather = w->kind == COLL_ALLGATHER || w->kind == COLL_GATHER;
    bool scatter = w->kind == COLL_REDUCE_SCATTER || w->kind == COLL_SCATTER;

    r->out = malloc((in > out ? in : out) + 8);
    memset(r->out, 0xa5, (in > out ? in : out) + 8);
    r->in = r->out;
    if (!w->in_place)
        r->in = malloc(in + 8);
    else if (gather && out)
        r->in = r->out + own;
    else if (scatter && in)
        r->out += own;
    memcpy(r->in, input, in);
}

static void take_memory(const struct row *w, struct irank *r)
{
    bool scatter = w->kind == COLL_REDUCE_SCATTER || w->kind == COLL_SCATTER;

    free(w->in_place && scatter ? r->in : r->out);
    if (!w->in_place)
        free(r->in);
    sched_free(&r->s);
}

/* Builds and runs; -ENOTSUP where the algorithm is not for this shape. *out (n ranks): what was
 * sent and so on. */
static int run_row(const struct row *w, uint64_t seed, struct interp *x)
{
    struct sched_topo t = topo_of(w);
    uint8_t *in[INTERP_RANKS];

    memset(x, 0, sizeof(*x));
    x->n = w->n, x->domain = domains, x->seed = seed;
    for (unsigned r = 0; r < w->n; r++) {
        struct sched_in i = in_of(w, &t, r);
        int rc = sched_init(&x->r[r].s, &i);

        if (rc == -ENOTSUP && !r)
            return rc;
        if (rc)
            fail_msg("%s: rank %u: %d", row_name(w), r, rc);
        in[r] = make_input(w, x->r[r].s.in_bytes, r);
        give_memory(w, &x->r[r], r, in[r]);
    }
    interp_run(x);
    for (unsigned r = 0; r < w->n; r++) {
        struct irank *k = &x->r[r];
        uint8_t *want = expected(w, in, k->s.out_bytes, r);

        if (memcmp(k->out, want, k->s.out_bytes))
            fail_msg("%s: rank %u is wrong", row_name(w), r);
        if (!w->in_place && memcmp(k->in, in[r], k->s.in_bytes))
            fail_msg("%s: rank %u: the input changed", row_name(w), r);
        free(want);
    }
    for (unsigned r = 0; r < w->n; r++) {
        take_memory(w, &x->r[r]);
        free(in[r]);
    }
    return 0;
}

static struct interp box;
static const uint64_t counts[] = {0, 1, 2, 17, 1009, 20011};
static const unsigned ranks[] = {1, 2, 3, 5, 7, 8, 9, 13, 16};
static const struct shape shapes[] = {{.trees = 1},
                                      {.domain = 16, .planes = 1, .trees = 2},
                                      {.domain = 16, .planes = 4, .trees = 1},
                                      {.domain = 4, .planes = 4, .trees = 3},
                                      {.domain = 2, .planes = 1, .trees = 1, .deal = true}};

static unsigned all_shapes(struct row w)
{
    unsigned done = 0;

    for (unsigned s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
        for (unsigned k = 0; k < sizeof(ranks) / sizeof(*ranks); k++)
            for (unsigned c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
                w.shape = shapes[s], w.n = ranks[k];
                w.count = w.kind == COLL_BARRIER ? 0 : counts[c];
                w.root = (c + k) % w.n;
                w.sparse = w.kind == COLL_ALLTOALL && c % 2 ? 1 + (c + k) % w.n : 0;
                w.mm_self = c % 2;
                done += !run_row(&w, s * 1000 + k * 100 + c, &box);
            }
    return done;
}

/* Every collective by every algorithm: what is there gives the plain result. */
static void every_algorithm_gives_the_plain_result(void **state)
{
    (void)state;
    for (enum coll_kind k = 0; k < COLL_KINDS; k++)
        for (enum coll_algo a = 0; a < ALGO_COUNT; a++)
            for (unsigned place = 0; place < 2; place++) {
                struct row w = {
                    .kind = k, .algo = a, .type = DT_INT32, .in_place = place, .mtu = 256};
                struct sched_in in = {.kind = k,
                                      .algo = a,
                                      .nranks = 1,
                                      .type = DT_INT32,
                                      .mtu = 256,
                                      .in_place = place};
                struct sched s;
                int rc = sched_init(&s, &in);

                if (rc)
                    continue;
                sched_free(&s);
                assert_true(all_shapes(w) > 0);
            }
}

static void types_operations_and_mtus(void **state)
{
    static const enum coll_algo algo[] = {ALGO_RING,    ALGO_SHARP,      ALGO_TREE,
                                          ALGO_HALVING, ALGO_DIRECT,     ALGO_NVLS,
                                          ALGO_HIER,    ALGO_HIER_SHARP, ALGO_NVLS_SHARP};

    (void)state;
    for (unsigned k = 0; k < sizeof(algo) / sizeof(*algo); k++)
        for (enum redop op = 0; op <= OP_AVG; op++)
            for (unsigned m = 0; m < 5; m++) {
                struct row w = {
                    .kind = COLL_ALLREDUCE,
                    .algo = algo[k],
                    .n = 6,
                    .count = 30011,
                    .type = op == OP_AVG ? DT_FP64
                            : op % 2     ? DT_INT32
                                         : DT_FP32,
                    .op = op,
                    .in_place = m % 2,
                    .mm_self = m / 2 % 2,
                    .mtu = 256u << m,
                    .shape = {.domain = algo[k] == ALGO_NVLS ? 6 : 3, .planes = 4, .trees = 2}};

                assert_int_equal(run_row(&w, k + 100 * m, &box), 0);
            }
}

/* Many more messages than slots, of the longest. */
static void long_vectors(void **state)
{
    static const enum coll_kind kind[] = {COLL_ALLREDUCE, COLL_REDUCE, COLL_BROADCAST,
                                          COLL_REDUCE_SCATTER, COLL_ALLGATHER};

    (void)state;
    for (unsigned k = 0; k < sizeof(kind) / sizeof(*kind); k++)
        for (enum coll_algo a = 0; a < ALGO_COUNT; a++) {
            struct row w = {.kind = kind[k],
                            .algo = a,
                            .n = 4,
                            .root = 1,
                            .count = 70 * SCHED_SLICE_MAX + 5,
                            .type = DT_INT8,
                            .in_place = k % 2,
                            .mtu = 4096,
                            .shape = {.domain = a == ALGO_NVLS ? 4 : 2, .planes = 4, .trees = 1}};
            struct sched_topo t = topo_of(&w);
            struct sched_in in = in_of(&w, &t, 0);
            struct sched s;
            int rc = sched_init(&s, &in);

            if (rc)
                continue;
            sched_free(&s);
            assert_int_equal(run_row(&w, a, &box), 0);
        }
}

#define B (5040ULL * 16 * 4) /* bytes that every number of ranks below divides */

/* A collective of B bytes in all on n ranks of one domain. */
static void count_bytes(enum coll_kind k, enum coll_algo a, unsigned n, bool self)
{
    struct row w = {.kind = k,
                    .algo = a,
                    .n = n,
                    .count = B / 4,
                    .type = DT_INT32,
                    .mm_self = self,
                    .mtu = 4096,
                    .shape = {.domain = n, .planes = 4, .trees = 2}};

    if (k == COLL_ALLGATHER || k == COLL_REDUCE_SCATTER)
        w.count /= n;
    if (k == COLL_ALLTOALL)
        w.count /= n * n;
    assert_int_equal(run_row(&w, n, &box), 0);
}

/* figures.md F20-F25: bytes that leave each rank, exactly. */
static void bytes_are_what_theory_says(void **state)
{
    static const unsigned some[] = {2, 3, 5, 7, 8, 9, 16};
    static const enum coll_algo all[] = {ALGO_RING, ALGO_DIRECT};

    (void)state;
    for (unsigned i = 0; i < sizeof(some) / sizeof(*some); i++)
        for (unsigned k = 0; k < 2; k++) {
            unsigned n = some[i];

            count_bytes(COLL_ALLREDUCE, all[k], n, false);
            for (unsigned r = 0; r < n; r++)
                assert_int_equal(box.r[r].sent, 2 * (n - 1) * B / n); /* F21 */
            count_bytes(COLL_ALLGATHER, all[k], n, false);
            for (unsigned r = 0; r < n; r++)
                assert_int_equal(box.r[r].sent, (n - 1) * B / n); /* F20 */
            count_bytes(COLL_REDUCE_SCATTER, all[k], n, false);
            for (unsigned r = 0; r < n; r++)
                assert_int_equal(box.r[r].sent, (n - 1) * B / n);
            count_bytes(COLL_ALLREDUCE, ALGO_SHARP, n, false);
            for (unsigned r = 0; r < n; r++)
                assert_true(box.r[r].agg_up == B && box.r[r].agg_down == B); /* F25 */
            if (B / 4 % (n * n) == 0) {
                count_bytes(COLL_ALLTOALL, all[k] == ALGO_RING ? ALGO_PAIRWISE : ALGO_DIRECT, n,
                            false);
                for (unsigned r = 0; r < n; r++)
                    assert_int_equal(box.r[r].sent, (n - 1) * B / n / n); /* F23 */
            }
        }
    for (unsigned n = 2; n <= 16; n *= 2) {
        count_bytes(COLL_ALLREDUCE, ALGO_HALVING, n, false);
        for (unsigned r = 0; r < n; r++)
            assert_int_equal(box.r[r].sent, 2 * (n - 1) * B / n); /* F22: the ring's bytes */
    }
}

/* F26: out of every GPU and into it B, whatever their number; F27: (1 + 1 / N) B. */
static void multimem_moves_f26_and_f27(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 8; n++)
        for (unsigned self = 0; self < 2; self++) {
            count_bytes(COLL_ALLREDUCE, ALGO_NVLS, n, self);
            for (unsigned r = 0; r < n; r++) {
                assert_int_equal(box.r[r].mm_out, self ? B + B / n : B);
                assert_int_equal(box.r[r].mm_in, self ? B + B / n : B);
                assert_int_equal(box.r[r].sent, 0); /* but empty messages */
            }
        }
}

/* The double tree: the root of both sends and gets the vector once each way, nobody more than it
 * both ways. All: N - 1 times each way, as any tree. */
static void trees_share_the_load(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 16; n++) {
        uint64_t sum = 0;

        count_bytes(COLL_BROADCAST, ALGO_TREE, n, false);
        for (unsigned r = 0; r < n; r++) {
            assert_true(box.r[r].sent <= B);
            sum += box.r[r].sent;
        }
        assert_int_equal(sum, (n - 1) * B);
        count_bytes(COLL_REDUCE, ALGO_TREE, n, false);
        for (unsigned r = 0; r < n; r++)
            assert_int_equal(box.r[r].sent, r ? B : 0);
    }
}

/* F28: of an all-reduce over M nodes of N, 2 (M - 1) / M of B / N leave a GPU by its NIC. */
static void levels_send_what_theory_says(void **state)
{
    struct row w = {.kind = COLL_ALLREDUCE,
                    .algo = ALGO_HIER,
                    .count = B / 4,
                    .type = DT_INT32,
                    .mtu = 4096,
                    .shape = {.planes = 4}};

    (void)state;
    for (unsigned m = 2; m <= 4; m++)
        for (unsigned local = 2; local <= 4; local++) {
            w.shape.domain = local, w.n = m * local;
            assert_int_equal(run_row(&w, m, &box), 0);
            for (unsigned r = 0; r < w.n; r++)
                assert_int_equal(box.r[r].sent,
                                 2 * (local - 1) * B / local + 2 * (m - 1) * (B / local) / m);
        }
}

/* Every large enough block is at least eight slices a channel, and slices are whole packets. */
static void slices_keep_the_pipeline_full(void **state)
{
    (void)state;
    for (uint64_t chunk = 32768; chunk <= 1ULL << 24; chunk *= 2) {
        struct sched_in in = {.kind = COLL_ALLREDUCE,
                              .algo = ALGO_RING,
                              .nranks = 8,
                              .count = chunk * 8 / 4,
                              .type = DT_FP32,
                              .mtu = 4096};
        struct sched s;

        assert_int_equal(sched_init(&s, &in), 0);
        for (unsigned l = 0; l < s.n_lanes; l++) {
            if (s.lane[l].kind != LANE_SEND)
                continue;
            assert_true(s.lane[l].n >= 14 * 8);
            assert_int_equal(s.lane[l].step[0].len % 4096, 0);
            assert_true(s.lane[l].step[0].len <= SCHED_SLICE_MAX);
        }
        sched_free(&s);
    }
}

static void nonsense_is_refused(void **state)
{
    struct sched_in in = {.kind = COLL_ALLREDUCE,
                          .algo = ALGO_RING,
                          .nranks = 4,
                          .count = 16,
                          .type = DT_FP32,
                          .mtu = 4096};
    struct sched s;

    (void)state;
    in.rank = 4;
    assert_int_equal(sched_init(&s, &in), -EINVAL);
    in.rank = 0, in.mtu = 1500;
    assert_int_equal(sched_init(&s, &in), -EINVAL);
    in.mtu = 4096, in.root = 4;
    assert_int_equal(sched_init(&s, &in), -EINVAL);
    in.root = 0, in.count = ~0ULL;
    assert_int_equal(sched_init(&s, &in), -E2BIG);
    in.count = 16, in.algo = ALGO_SHARP; /* no trees */
    assert_int_equal(sched_init(&s, &in), -ENOTSUP);
    in.algo = ALGO_NVLS;
    assert_int_equal(sched_init(&s, &in), -ENOTSUP);
    in.kind = COLL_ALLTOALL, in.algo = ALGO_DIRECT, in.in_place = true;
    assert_int_equal(sched_init(&s, &in), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_gives_the_plain_result),
        cmocka_unit_test(types_operations_and_mtus),
        cmocka_unit_test(long_vectors),
        cmocka_unit_test(bytes_are_what_theory_says),
        cmocka_unit_test(multimem_moves_f26_and_f27),
        cmocka_unit_test(trees_share_the_load),
        cmocka_unit_test(levels_send_what_theory_says),
        cmocka_unit_test(slices_keep_the_pipeline_full),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
