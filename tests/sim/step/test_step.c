/* SPDX-License-Identifier: BSD-3-Clause */
/* A training step's schedule against closed forms, and its collectives against its workload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "sim/step/step.h"

static void same(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fabs(b) + 1e-15)
        fail_msg("found %.12g, expected %.12g", a, b);
}

/* (M + S - 1) (f + b) of a stage, and 2 (S - 1) messages on the way in and out. */
static void a_pipeline_fills_and_drains(void **state)
{
    static const unsigned stages[] = {1, 2, 4, 16}, micros[] = {1, 3, 16, 120};

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < 4; k++) {
            struct step_cost c = {.layers = 5,
                                  .stages = stages[i],
                                  .microbatches = micros[k],
                                  .forward = 1e-3,
                                  .backward = 2e-3};
            double whole = (micros[k] + stages[i] - 1) * 5 * 3e-3;

            same(step_seconds(&c), whole);
            if (micros[k] > 1)
                continue;
            c.comms[ROOF_PP] = 1e-4;
            same(step_seconds(&c), whole + 2 * (stages[i] - 1) * 1e-4);
        }
}

static void tensor_parallel_communication_stands_between_layers(void **state)
{
    struct step_cost c = {
        .layers = 4, .stages = 2, .microbatches = 6, .forward = 1e-3, .backward = 2e-3};

    (void)state;
    c.comms[ROOF_TP] = 5e-4;
    same(step_seconds(&c), (6 + 1) * 4 * (3e-3 + 2 * 5e-4));
}

static void experts_hide_behind_another_microbatch_only(void **state)
{
    struct step_cost c = {
        .layers = 4, .stages = 1, .microbatches = 1, .forward = 1e-3, .backward = 2e-3};

    (void)state;
    c.comms[ROOF_EP] = 1.5e-3;
    same(step_seconds(&c), 4 * (3e-3 + 2 * 1.5e-3));
    c.microbatches = 2; /* forward 0.5 ms of it show, backward none */
    same(step_seconds(&c), 2 * 4 * (3e-3 + 0.5e-3));
}

static void gradients_hide_behind_the_backward_pass_but_for_the_last_layer(void **state)
{
    struct step_cost c = {
        .layers = 10, .stages = 1, .microbatches = 1, .forward = 1e-3, .backward = 2e-3};

    (void)state;
    c.comms[ROOF_DP] = 0.5e-3; /* an all-reduce is two passes */
    same(step_seconds(&c), 10 * 3e-3 + 1e-3);
    c.comms[ROOF_DP] = 2e-3; /* 4 ms a layer, 2 ms to hide it: from the first layer on one waits */
    same(step_seconds(&c), 10 * 1e-3 + 2e-3 + 10 * 4e-3);
    /* ZeRO 1: weights come before each layer of the first forward pass. */
    c.zero = 1;
    same(step_seconds(&c), 10 * 2e-3 + 1e-3 + 10 * 2e-3 + 2e-3);
    c.zero = 2; /* gradients are sharded too, which changes no time */
    same(step_seconds(&c), 10 * 2e-3 + 1e-3 + 10 * 2e-3 + 2e-3);
    c.zero = 3; /* and again before those of the backward pass, as long as they take here */
    same(step_seconds(&c), 10 * 2e-3 + 1e-3 + 2e-3 + 10 * 2e-3 + 2e-3);
}

/* Drawn steps: what a level of ZeRO may change, whatever the pipeline and its times are. */
static void levels_of_zero_keep_their_order_in_drawn_steps(void **state)
{
    uint64_t rng = 4;

    (void)state;
    for (unsigned i = 0; i < 500; i++) {
        struct step_cost c = {.layers = 1 + (unsigned)(random_next(&rng) % 12),
                              .stages = 1 + (unsigned)(random_next(&rng) % 6),
                              .microbatches = 1 + (unsigned)(random_next(&rng) % 9),
                              .forward = 1e-6 * (double)(1 + random_next(&rng) % 1000),
                              .backward = 1e-6 * (double)(1 + random_next(&rng) % 2000)};
        double at[4], least, dp;

        for (unsigned k = 0; k < ROOF_KINDS; k++)
            c.comms[k] = 1e-6 * (double)(random_next(&rng) % 1500);
        dp = c.comms[ROOF_DP];
        least = c.layers * c.microbatches * (c.forward + c.backward + 2 * c.comms[ROOF_TP]);
        for (c.zero = 0; c.zero < 4; c.zero++) {
            at[c.zero] = step_seconds(&c);
            assert_true(at[c.zero] >= least * (1 - 1e-9));
        }
        same(at[2], at[1]);
        /* One more gathering in each stage, which makes nothing earlier. */
        assert_true(at[3] >= at[2] * (1 - 1e-9));
        assert_true(at[3] <= (at[2] + c.stages * c.layers * dp) * (1 + 1e-9));
        c.comms[ROOF_DP] = 0;
        for (c.zero = 0; c.zero < 4; c.zero++) {
            double without = step_seconds(&c);

            assert_true(without <= at[c.zero] * (1 + 1e-9));
            least = c.zero ? least : without;
            same(without, least); /* all levels are one where gradients take no time */
        }
    }
}

static const struct step_collective *find(const struct step_collective *u, unsigned n,
                                          enum roof_kind kind, enum coll_kind coll, bool experts)
{
    for (unsigned i = 0; i < n; i++)
        if (u[i].kind == kind && u[i].coll == coll && u[i].experts == experts)
            return &u[i];
    fail_msg("no such collective");
    return NULL;
}

static void collectives_are_those_of_the_workload(void **state)
{
    static struct fab_errors errs;
    struct step_collective u[STEP_COLLECTIVES];
    const struct step_collective *x;
    struct workload w;
    unsigned n;

    (void)state;
    assert_int_equal(workload_load(&w, "conf/workloads/llama3-70b.conf", &errs), 0);
    n = step_collectives(&w, u);
    assert_int_equal(n, 4);
    x = find(u, n, ROOF_TP, COLL_ALLREDUCE, false);
    assert_int_equal(x->degree, 8);
    assert_int_equal(x->stride, 1);
    assert_int_equal(x->bytes, 3125 * 8192 * 2);
    same(x->times, 4 * 10 * 20); /* ten layers a stage, 20 microbatches */
    x = find(u, n, ROOF_DP, COLL_REDUCE_SCATTER, false);
    assert_int_equal(x->degree, 64);
    assert_int_equal(x->stride, 64);
    same((double)x->bytes / 2, floor(workload_params(&w) / 64));
    x = find(u, n, ROOF_PP, COLL_SENDRECV, false);
    assert_int_equal(x->stride, 8);
    assert_int_equal(x->bytes, 3125 * 8192 * 2 / 8);
    same(x->times, 40);

    assert_int_equal(workload_load(&w, "conf/workloads/deepseek-v3.conf", &errs), 0);
    n = step_collectives(&w, u);
    assert_int_equal(n, 6);
    x = find(u, n, ROOF_EP, COLL_ALLTOALL, false);
    assert_int_equal(x->degree, 64);
    assert_int_equal(x->bytes, 4096ull * 7168 * 2 * 4); /* eight experts in four nodes */
    x = find(u, n, ROOF_DP, COLL_ALLGATHER, true);
    assert_int_equal(x->degree, 2);
    assert_int_equal(x->stride, 64);
}

/* ZeRO 1 and 2 shard the optimiser's state and the gradients: weights are gathered once. ZeRO 3 shards the weights: once for each
 * pass. */
static void weights_are_gathered_in_the_backward_pass_by_zero_3_alone(void **state)
{
    static struct fab_errors errs;
    struct workload w;

    (void)state;
    assert_int_equal(workload_load(&w, "conf/workloads/deepseek-v3.conf", &errs), 0);
    for (w.zero = 0; w.zero <= 3; w.zero++)
        for (unsigned experts = 0; experts < 2; experts++) {
            struct step_collective u[STEP_COLLECTIVES];
            unsigned n = step_collectives(&w, u);
            const struct step_collective *x;

            if (!w.zero) {
                same(find(u, n, ROOF_DP, COLL_ALLREDUCE, experts)->times, 1);
                continue;
            }
            same(find(u, n, ROOF_DP, COLL_REDUCE_SCATTER, experts)->times, 1);
            x = find(u, n, ROOF_DP, COLL_ALLGATHER, experts);
            same(x->times, w.zero == 3 ? 2 : 1);
        }
}

/* A second for each collective: of a layer, half of an all-reduce, or each of reduce-scatter and all-gather. */
static void a_layer_has_its_share_of_each_collective_on_gradients(void **state)
{
    static struct fab_errors errs;
    struct workload w;

    (void)state;
    assert_int_equal(workload_load(&w, "conf/workloads/llama3-70b.conf", &errs), 0);
    for (w.zero = 0; w.zero <= 3; w.zero++) {
        struct step_collective u[STEP_COLLECTIVES];
        unsigned n = step_collectives(&w, u);
        struct step_cost c;

        for (unsigned i = 0; i < n; i++)
            u[i].timing[0].s = 1;
        c = step_cost(&w, u, n, 0);
        assert_int_equal(c.zero, w.zero);
        same(c.comms[ROOF_DP] * c.layers, w.zero ? 1 : 0.5);
        same(c.comms[ROOF_PP], 1);
        same(c.comms[ROOF_TP], 2);
    }
}

static struct cost_levels levels_of(const char *conf)
{
    static struct fab_errors errs;
    struct fabric *f = fabric_load(conf, &errs);
    struct cost_levels l;

    assert_non_null(f);
    cost_levels(f, &l);
    fabric_free(f);
    return l;
}

/* The table of docs/training-step.md: bytes of one collective, and its bound in ms, by hand: bytes
 * that a member must receive over 50 GB/s of its NIC or 450 GB/s of its NVLinks (H800 in a fabric
 * of H100 nodes: the fabric's). */
static void bounds_are_those_of_hand(void **state)
{
    static const struct {
        const char *workload, *conf;
        enum roof_kind kind;
        enum coll_kind coll;
        bool experts;
        double bytes, share, Bps;
    } rows[] = {
#define ON(n) "conf/h100-superpod-" #n ".conf"
        {"megatron-16b", ON(1024), ROOF_TP, COLL_ALLREDUCE, false, 4096. * 6144 * 2, 2 * 7 / 8.,
         450e9},
        {"megatron-16b", ON(1024), ROOF_DP, COLL_ALLGATHER, false, 16106127360. / 8 * 2, 23 / 24.,
         50e9},
        {"megatron-70b", ON(1024), ROOF_TP, COLL_ALLREDUCE, false, 4096. * 8192 * 2, 2 * 7 / 8.,
         450e9},
        {"megatron-70b", ON(1024), ROOF_DP, COLL_ALLGATHER, false, 69793218560. / 32 * 2, 23 / 24.,
         50e9},
        {"megatron-70b", ON(1024), ROOF_PP, COLL_SENDRECV, false, 4096. * 8192 * 2 / 8, 1, 50e9},
        {"megatron-314b", ON(4096), ROOF_DP, COLL_ALLGATHER, false, 313532612608. / 128 * 2,
         23 / 24., 50e9},
        {"llama3-70b", ON(4096), ROOF_DP, COLL_ALLGATHER, false, 70550290432. / 64 * 2, 63 / 64.,
         50e9},
        {"llama3-70b", ON(4096), ROOF_PP, COLL_SENDRECV, false, 3125. * 8192 * 2 / 8, 1, 50e9},
        {"llama3-405b", ON(4096), ROOF_DP, COLL_ALLGATHER, false, 405843738624. / 128 * 2,
         127 / 128., 50e9},
        {"deepseek-v3", ON(2048), ROOF_EP, COLL_ALLTOALL, false, 4096. * 7168 * 2 * 4, 56 / 64.,
         50e9},
        {"deepseek-v3", ON(2048), ROOF_DP, COLL_REDUCE_SCATTER, true,
         58. * 256 * 3 * 7168 * 2048 / 16 / 64 * 2, 1 / 2., 50e9},
#undef ON
    };
    static struct fab_errors errs;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cost_levels l = levels_of(rows[i].conf);
        struct step_collective u[STEP_COLLECTIVES];
        const struct step_collective *x;
        struct workload w;
        char path[96];
        double s, by_hand = rows[i].bytes * rows[i].share / rows[i].Bps;
        unsigned n;

        snprintf(path, sizeof(path), "conf/workloads/%s.conf", rows[i].workload);
        assert_int_equal(workload_load(&w, path, &errs), 0);
        n = step_collectives(&w, u);
        x = find(u, n, rows[i].kind, rows[i].coll, rows[i].experts);
        s = step_bound(&l, x, x->degree, x->bytes, STEP_HOSTS, false);
        print_message("%s %s %s: %llu bytes, %.6g ms, by hand %.0f, %.6g ms\n", rows[i].workload,
                      roof_kind_name(x->kind), coll_name(x->coll), (unsigned long long)x->bytes,
                      s * 1e3, rows[i].bytes, by_hand * 1e3);
        if (fabs((double)x->bytes - rows[i].bytes) > 2e-3 * rows[i].bytes ||
            fabs(s - by_hand) > 2e-3 * by_hand)
            fail_msg("differs");
    }
}

/* A GPU sends its 2 M messages through a pipeline, at their bound: less than with all stages' turns
 * counted. */
static void theory_of_a_pipeline_is_what_a_gpu_sends(void **state)
{
    static const char *const names[] = {"megatron-70b", "llama3-70b", "deepseek-v3"};
    static struct fab_errors errs;
    struct cost_levels l = levels_of("conf/h100-superpod-4096.conf");

    (void)state;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct step_collective u[STEP_COLLECTIVES];
        const struct step_collective *x;
        struct roof roof[ROOF_KINDS];
        struct workload w;
        char path[96];
        unsigned n;
        double sent;

        snprintf(path, sizeof(path), "conf/workloads/%s.conf", names[i]);
        assert_int_equal(workload_load(&w, path, &errs), 0);
        n = step_collectives(&w, u);
        x = find(u, n, ROOF_PP, COLL_SENDRECV, false);
        roofline_workload(&w, &l, roof);
        sent = x->times * step_bound(&l, x, 2, x->bytes, STEP_HOSTS, false);
        if (fabs(roof[ROOF_PP].sent_s - sent) > 1e-6 * sent)
            fail_msg("%s: %g s, its messages need %g s", names[i], roof[ROOF_PP].sent_s, sent);
        same(roof[ROOF_PP].comms_s, sent * (w.microbatches + w.pp - 2.0) / w.microbatches);
        same(roof[ROOF_DP].sent_s, roof[ROOF_DP].comms_s);
    }
}

/* Two of a leaf's four hosts are its last stage: its two uplinks carry what their NICs send. */
static void theory_of_a_pipeline_counts_those_that_cross(void **state)
{
    static struct fab_errors errs;
    struct cost_levels l = levels_of("conf/leaf-spine-8.conf");
    struct roof roof[ROOF_KINDS];
    struct workload w;

    (void)state;
    assert_int_equal(workload_load(&w, "conf/workloads/megatron-70b.conf", &errs), 0);
    w.tp = 1, w.dp = 2, w.pp = 4;
    roofline_workload(&w, &l, roof);
    same(roof[ROOF_PP].sent_s, 2. * 2 * (double)w.batch_tokens / 2 * w.d_model / 50e9);
    w.dp = 4, w.pp = 2; /* all four */
    roofline_workload(&w, &l, roof);
    same(roof[ROOF_PP].sent_s, 2. * 2 * (double)w.batch_tokens / 4 * w.d_model / 25e9);
}

/* The FLOPs of that table. */
static void flops_are_those_of_hand(void **state)
{
    static const struct {
        const char *workload;
        double active, tokens;
    } rows[] = {{"megatron-16b", 32 * 12 * 6144. * 6144 + 2. * 131072 * 6144, 192 * 4096.},
                {"megatron-70b", 84 * 12 * 8192. * 8192 + 2. * 131072 * 8192, 384 * 4096.},
                {"megatron-314b", 96 * 12 * 16384. * 16384 + 2. * 131072 * 16384, 1536 * 4096.},
                {"llama3-70b", 70.55e9, 4e6},
                {"llama3-405b", 405.8e9, 2048 * 8192.},
                {"deepseek-v3", 37.55e9, 15360 * 4096.}};
    static struct fab_errors errs;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double by_hand = 6 * rows[i].active * rows[i].tokens;
        struct workload w;
        char path[96];

        snprintf(path, sizeof(path), "conf/workloads/%s.conf", rows[i].workload);
        assert_int_equal(workload_load(&w, path, &errs), 0);
        if (fabs(workload_step_flops(&w) - by_hand) > 1e-3 * by_hand)
            fail_msg("%s: %.5g FLOPs, by hand %.5g", path, workload_step_flops(&w), by_hand);
    }
}

/* 16 leaves of 16 hosts on spines of 1/r of the hosts' bandwidth: eight groups of 32 share a leaf's
 * cables, two members of each below it. */
static void groups_share_what_is_oversubscribed(void **state)
{
    struct step_collective u = {.kind = ROOF_DP, .coll = COLL_ALLREDUCE, .degree = 32, .stride = 8};

    (void)state;
    for (unsigned r = 1; r <= 32; r *= 2) {
        struct cost_levels l = {
            .n = 2,
            .lv = {{FAB_ROLE_LEAF, .below = 1, .hosts = 16, .switches = 1, .child_Bps = 50e9},
                   {FAB_ROLE_SPINE, .tier = 1, .below = 16, .hosts = 256, .switches = 1,
                    .child_Bps = 16 * 50e9 / r}}};
        double nic = 2 * 31 / 32. * 1e9 / 50e9, leaf = 2 * 15 / 16. * 8e9 / (16 * 50e9 / r);

        same(step_bound(&l, &u, 32, 1000000000, STEP_HOSTS, true), nic);
        same(step_bound(&l, &u, 32, 1000000000, STEP_HOSTS, false), nic > leaf ? nic : leaf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_fills_and_drains),
        cmocka_unit_test(tensor_parallel_communication_stands_between_layers),
        cmocka_unit_test(experts_hide_behind_another_microbatch_only),
        cmocka_unit_test(gradients_hide_behind_the_backward_pass_but_for_the_last_layer),
        cmocka_unit_test(levels_of_zero_keep_their_order_in_drawn_steps),
        cmocka_unit_test(collectives_are_those_of_the_workload),
        cmocka_unit_test(weights_are_gathered_in_the_backward_pass_by_zero_3_alone),
        cmocka_unit_test(a_layer_has_its_share_of_each_collective_on_gradients),
        cmocka_unit_test(bounds_are_those_of_hand),
        cmocka_unit_test(theory_of_a_pipeline_is_what_a_gpu_sends),
        cmocka_unit_test(theory_of_a_pipeline_counts_those_that_cross),
        cmocka_unit_test(flops_are_those_of_hand),
        cmocka_unit_test(groups_share_what_is_oversubscribed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
