/* SPDX-License-Identifier: BSD-3-Clause */
/* What a protocol has counted, of all ranks and all switches of its job and of no other protocol's. */
#include "protocols/host/load.h"
#include "sim/report/protocol_counters.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#include <tributary/protocol.h>

#define RANKS 4u

static struct rte_mempool *pool;
static enum coll_algo alpha, beta;

/* ---- two protocols; what they compute is nothing ---- */

static bool supports(enum trib_type type, enum trib_sum op)
{
    (void)type, (void)op;
    return true;
}

static int rank_open(struct trib_rank *r)
{
    (void)r;
    return 0;
}

static void rank_close(struct trib_rank *r)
{
    (void)r;
}

static int start(struct trib_rank *r, const struct trib_op *op)
{
    (void)op;
    r->api->count(r, 0, r->rank + 1);
    r->api->done(r);
    return 0;
}

static void rank_packet(struct trib_rank *r, const struct trib_packet *p)
{
    (void)r, (void)p;
}

/* Each switch holds two of four slots of 16 bytes. */
static int open_at_switch(struct trib_switch *s, struct trib_job *j)
{
    j->self = s->api->array(s, j, "slots", 4, 16);
    if (!j->self)
        return -1;
    s->api->take(s, j, j->self, 0);
    s->api->take(s, j, j->self, 3);
    s->api->count(s, 0, 3);
    s->api->count(s, 1, 5);
    return 0;
}

static void close_at_switch(struct trib_switch *s, struct trib_job *j)
{
    s->api->give(s, j, j->self, 0);
    s->api->give(s, j, j->self, 3);
}

static void switch_packet(struct trib_switch *s, struct trib_job *j, const struct trib_packet *p)
{
    (void)s, (void)j, (void)p;
}

static const char *const rank_counters[] = {"waits", NULL}, *const switch_counters[] = {
                                                                "things", "things_peak", NULL};
static const struct trib_rank_half rank_half = {.counters = rank_counters,
                                                .open = rank_open,
                                                .close = rank_close,
                                                .start = start,
                                                .packet = rank_packet,
                                                .room = rank_close};
static const struct trib_switch_half switch_half = {.counters = switch_counters,
                                                    .job_open = open_at_switch,
                                                    .job_close = close_at_switch,
                                                    .packet = switch_packet};
static struct trib_protocol protocols[] = {
    {.version = TRIB_PROTOCOL_VERSION,
     .name = "alpha",
     .about = "for tests",
     .supports = supports,
     .rank = &rank_half,
     .sw = &switch_half},
    {.version = TRIB_PROTOCOL_VERSION,
     .name = "alphabet",
     .about = "for tests",
     .supports = supports,
     .rank = &rank_half,
     .sw = &switch_half},
};

/* ---- a job ---- */

static uint64_t value(const struct row_counters *r, const char *name)
{
    for (unsigned i = 0; i < r->n; i++)
        if (!strcmp(r->c[i].name, name))
            return r->c[i].v;
    fail_msg("no counter %s", name);
    return 0;
}

/* The ranks' and the switches' together; levels are of the switch that has most. */
static void check(const struct row_counters *r)
{
    static const struct {
        const char *name;
        uint64_t v;
        bool level;
    } row[] = {
        {"waits", 1 + 2 + 3 + 4, false}, {"switch_jobs", 3, false},
        {"switch_refused", 0, false},    {"switch_packets", 0, false},
        {"switch_sent", 0, false},       {"switch_forwarded", 0, false},
        {"switch_work_bytes", 0, false}, {"switch_work_ops", 0, false},
        {"switch_memory", 64, true},     {"switch_memory_peak", 64, true},
        {"switch_slots", 2, true},       {"switch_slots_peak", 2, true},
        {"switch_leaked", 0, false},     {"switch_things", 3 * 3, false},
        {"switch_things_peak", 5, true},
    };

    assert_int_equal(r->n, LEN(row));
    for (unsigned i = 0; i < LEN(row); i++) {
        assert_string_equal(r->c[i].name, row[i].name);
        assert_int_equal(r->c[i].v, row[i].v);
        assert_int_equal(r->c[i].level, row[i].level);
    }
}

/* Two leaves and a spine: three switches have a job each, with 64 bytes and two slots. */
static void of_ranks_and_switches(void **state)
{
    static const uint16_t hosts[RANKS] = {0, 1, 2, 3};
    struct fabric *f = load_leaf_spine(2, 1, 2, 1, "");
    struct world_cfg wc = {
        .fab = f, .nranks = RANKS, .host_of_rank = hosts, .pool = pool, .seed = 1};
    struct job_cfg jc = {.fab = f,
                         .nranks = RANKS,
                         .host_of_rank = hosts,
                         .group = 1,
                         .key = 7,
                         .algos = 1u << alpha | 1u << beta,
                         .n_trees = 1,
                         .any_order = true,
                         .buffer_bytes = 4096,
                         .limit_ps = 60 * PS_PER_S};
    struct job_op op = {.algo = alpha, .type = DT_FP32, .op = OP_SUM, .count = 8};
    static struct row_counters r;
    struct job_result res;
    char err[COMM_TEXT] = "";
    struct job *j;

    (void)state;
    assert_int_equal(world_create(&jc.w, &wc), 0);
    if (job_create(&j, &jc, err))
        fail_msg("%s", err);
    job_run(j, &op, &res);
    op.algo = beta;
    job_run(j, &op, &res);
    job_run(j, &op, &res);
    r.n = 3;
    protocol_counters_read(j, jc.w, f, RANKS, ALGO_RING, &r);
    assert_int_equal(r.n, 0);
    protocol_counters_read(j, jc.w, f, RANKS, alpha, &r);
    check(&r);
    protocol_counters_read(j, jc.w, f, 3, beta, &r); /* of the first three */
    assert_int_equal(value(&r, "waits"), 2 * (1 + 2 + 3));
    assert_int_equal(value(&r, "switch_things"), 9);
    assert_int_equal(job_destroy(j), 0);
    world_destroy(jc.w);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_ranks_and_switches)};
    char err[PROTO_TEXT] = "";

    test_eal_init();
    pool = test_pool(20000);
    alpha = ALGO_PROTOCOL + (enum coll_algo)proto_add(&protocols[0], err);
    beta = ALGO_PROTOCOL + (enum coll_algo)proto_add(&protocols[1], err);
    if (!coll_protocol(alpha) || !coll_protocol(beta)) {
        fprintf(stderr, "%s\n", err);
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
