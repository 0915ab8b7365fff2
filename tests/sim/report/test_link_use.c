/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of links in a row's results are those of the frames that a tap sees, to the byte, with
 * and without loss: of each direction by the row's counters, of the busiest one by the row's link.
 * No tap sees a frame that was lost: its bytes are counted apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>

#include "host/bench/op_times.h"
#include "model/predict.h"
#include "sim/report/bench.h"
#include "tests/support/eal.h"

#define NRANKS 8u
#define BYTES  262144u
#define OPS    3u
#define FRAMES 60000u
#define LINKS  32u

static const uint16_t hosts[NRANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
static struct rte_mempool *pool;
static const volatile int never;

/* Bytes that arrived, by direction: of frames that started in this time, and of all. */
struct seen {
    const struct fabric *f;
    int64_t from_ps, until_ps;
    uint64_t row[2 * LINKS], all[2 * LINKS];
};

static void tap(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps)
{
    struct seen *s = ctx;
    uint32_t bytes = frame_wire_bytes(m);
    int64_t started = now_ps - fabric_latency(s->f, dirlink) -
                      link_time_ps(bytes, s->f->links[dirlink / 2].rate_bps);

    s->all[dirlink] += bytes;
    if (started >= s->from_ps && started < s->until_ps)
        s->row[dirlink] += bytes;
}

/* ---- comparison ---- */

struct sums {
    uint64_t busiest, lost;
    unsigned directions;
};

static uint64_t number(const json_t *j, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(j, key));
}

static unsigned direction(const struct fabric *f, const json_t *j)
{
    int link = fabric_link_by_name(f, json_string_value(json_object_get(j, "link")));
    char first[FAB_NAME + 8];

    assert_true(link >= 0);
    snprintf(first, sizeof(first), "%s:%u", f->nodes[f->links[link].a].name,
             (unsigned)f->links[link].a_port);
    return 2 * (unsigned)link + (strcmp(first, json_string_value(json_object_get(j, "from"))) != 0);
}

/* Counters of every direction against what arrived there. */
static struct sums compare(const struct fabric *f, const json_t *links, const uint64_t *arrived)
{
    struct sums s = {0};
    const json_t *j;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)links, i, j)
    {
        unsigned d = direction(f, j);
        uint64_t sent = number(j, "link_bytes");
        uint64_t lost = number(j, "lost_bytes") +
                        FRAME_LINK_OVERHEAD * number(json_object_get(j, "drops"), "lost");

        if (sent != arrived[d] + lost)
            fail_msg("%s from %s: %lu bytes sent, but %lu arrived and %lu were lost",
                     json_string_value(json_object_get(j, "link")),
                     json_string_value(json_object_get(j, "from")), sent, arrived[d], lost);
        s.busiest = RTE_MAX(s.busiest, sent);
        s.lost += lost;
        s.directions += sent > 0;
    }
    return s;
}

/* ---- a run ---- */

static struct row row_by(const struct fabric *f, enum coll_algo algo)
{
    struct row r = {.coll = COLL_ALLREDUCE,
                    .algo = algo,
                    .type = DT_FP32,
                    .op = OP_SUM,
                    .nranks = NRANKS,
                    .emulated = true,
                    .bytes = BYTES,
                    .count = BYTES / 4};
    struct coll_args a = row_args(&r);

    assert_int_equal(coll_predict(f, &a, NRANKS, hosts, 0, 0, &r.pred), 0);
    return r;
}

/* Runs the row twice, since its first run makes connections, then leaves: by then every frame of
 * the second one has arrived. */
static void run(struct bench_cfg *cfg, struct row *r, struct seen *s)
{
    struct bench_state st;
    struct bench *b;
    char err[COMM_TEXT] = "";

    if (bench_create(&b, cfg, err) || bench_place(b, r, OUT_OF_PLACE, err))
        fail_msg("%s", err);
    bench_state(b, &st);
    s->from_ps = st.fabric_ps;
    if (bench_place(b, r, IN_PLACE, err))
        fail_msg("%s", err);
    bench_state(b, &st);
    s->until_ps = st.fabric_ps;
    assert_int_equal(bench_leave(b), 0);
    bench_destroy(b);
}

static struct sums row_sums(struct fabric *f, enum coll_algo algo)
{
    static const uint16_t tree;
    struct perf_opts o = {.iters = OPS, .min_bytes = BYTES, .max_bytes = BYTES, .max_wall = 600};
    struct row r = row_by(f, algo);
    struct seen s = {.f = f, .from_ps = INT64_MAX, .until_ps = INT64_MAX};
    struct bench_cfg cfg = {.fab = f,
                            .o = &o,
                            .nranks = NRANKS,
                            .host_of_rank = hosts,
                            .algos = 1u << algo,
                            .n_trees = 1,
                            .tree = &tree,
                            .seed = 5,
                            .lengths = true,
                            .pool = pool,
                            .frames = FRAMES,
                            .threads = 1,
                            .tap = tap,
                            .tap_ctx = &s,
                            .stop = &never};
    struct sums sums;

    assert_true(f->n_links <= LINKS);
    assert_int_equal(counters_create(&cfg.counters, f, NULL), 0);
    run(&cfg, &r, &s);
    sums = compare(f, r.run[IN_PLACE].links, s.row);
    assert_true(r.run[IN_PLACE].link.known);
    assert_int_equal(r.run[IN_PLACE].link.bytes, sums.busiest);
    print_message("%-7s %s: link %.1f bytes an operation, of the model %.4f, %lu lost\n",
                  perf_algo_name(algo), f->links[0].loss > 0 ? "1 % loss" : "no loss ",
                  link_use_bytes(&r.run[IN_PLACE].link, OPS), row_link_ratio(&r, &r.run[IN_PLACE]),
                  sums.lost);
    counters_destroy(cfg.counters);
    op_times_free(&r.run[OUT_OF_PLACE].times);
    op_times_free(&r.run[IN_PLACE].times);
    return sums;
}

static void bytes_are_those_of_the_frames(void **state)
{
    static const enum coll_algo algos[] = {ALGO_RING, ALGO_SHARP, ALGO_TREE, ALGO_DIRECT};
    struct fabric *f = fabric_load("conf/leaf-spine-8.conf", NULL);

    (void)state;
    assert_non_null(f);
    for (unsigned k = 0; k < 2 * RTE_DIM(algos); k++) {
        bool lossy = k >= RTE_DIM(algos);
        struct sums s;

        for (unsigned i = 0; i < f->n_links; i++)
            f->links[i].loss = lossy ? 0.01 : 0;
        s = row_sums(f, algos[k % RTE_DIM(algos)]);
        assert_true(s.directions >= 2 * NRANKS);
        assert_true(s.busiest > OPS * BYTES);
        assert_int_equal(s.lost > 0, lossy);
    }
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_frames),
    };

    test_eal_init();
    pool = test_pool(FRAMES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
