/* SPDX-License-Identifier: BSD-3-Clause */
/* F45 to F59: when memory or communication binds. (F44 is tested with the devices, F56 to F59 with
 * the presets in test_workload.c, where they are about those.) */
#include "tests/fabric/theory/figures.h"

static void matrices_need_their_intensity(void **state)
{
    const struct gpu_device *h100 = device("h100"), *b200 = device("b200");

    (void)state;
    WITHIN(roofline_intensity(h100, DEV_BF16), 295.5, 0.0002); /* F45 */
    WITHIN(roofline_intensity(b200, DEV_BF16), 281.25, 0.0002);
    WITHIN(roofline_intensity(h100, DEV_FP8), 591, 0.0002);
    WITHIN(roofline_intensity(b200, DEV_FP8), 562.5, 0.0002);
}

static void worked_kernels_of_one_gpu(void **state)
{
    bool memory;

    (void)state;
    NEAR(roofline_matmul_s(device("b200"), DEV_BF16, 64, 4096, 8192, &memory), 8.6e-6); /* F46 */
    assert_true(memory);
    WITHIN(roofline_matmul_s(device("b200"), DEV_BF16, 512, 4096, 8192, &memory), 15e-6, 0.033);
    assert_false(memory);
    NEAR(1 / roofline_add_s(device("h100"), 1), 2.8e11);           /* F47 */
    WITHIN(roofline_add_s(device("h100"), 65536), 0.23e-6, 0.022); /* two digits */
    NEAR(roofline_add_s(device("h100"), 1 << 30), 3.84e-3);
}

static void data_parallel_needs_tokens(void **state)
{
    const struct gpu_device *h = device("h100"), *b = device("b200");
    double c = h->bf16_flops;

    (void)state;
    NEAR(roofline_dp_tokens(c, device_nvlink_Bps(h), 1, 1, 0, 1), 2200); /* F50 */
    NEAR(roofline_dp_tokens(c, device_node_Bps(h), 1, 1, 0, 1), 2475);
    NEAR(roofline_dp_tokens(b->bf16_flops, device_node_Bps(b), 1, 1, 0, 1), 5625);
    NEAR(roofline_dp_tokens(c, device_node_Bps(h), 128, 4, 0, 1), 79200); /* F51 */
    NEAR(roofline_dp_tokens(c, device_node_Bps(h), 1, 1, 2, 1), 1237);    /* F52 */
    NEAR(roofline_dp_tokens(c, device_node_Bps(h), 1, 1, 0, 8), 309);     /* F58 */
}

static void tensor_parallel_needs_wide_layers(void **state)
{
    const struct gpu_device *h = device("h100");

    (void)state;
    NEAR(roofline_tp_degree(h->bf16_flops, device_nvlink_Bps(h), 28000), 28000 / 2200.); /* F53 */
    NEAR(roofline_tp_degree(h->bf16_flops, device_node_Bps(h), 28000), 28000 / 2475.);
    assert_int_equal(roofline_tp_degree(h->bf16_flops, device_node_Bps(h), 28000), 11);
}

static void expert_parallel_by_its_formulas(void **state)
{
    const struct gpu_device *h = device("h100");
    struct cost_levels l = levels_of("h100-superpod-1024");
    double c = h->bf16_flops, w = device_node_Bps(h), a = c / w, tokens = 1e6, d = 7168, f = 20000;

    (void)state;
    for (unsigned z = 16; z <= 256; z *= 2)
        for (unsigned k = 1; k <= 64; k *= 2) { /* F54 */
            double comms = roofline_ep_comms_s(w, z, 8, tokens, k, d),
                   math = roofline_ep_math_s(c, z, tokens, k, d, f);
            struct cost there = cost_alltoall(&l, all(z), 2 * tokens * d * z / 8, COST_SPARSE, k);

            NEAR(math, 4 * tokens * k * d * f / (z * c));
            NEAR(comms, 4 * tokens * d * (z - 8) / (w * z) * fmin(8. * k / z, 1));
            NEAR(comms, 2 * there.level_s[1]); /* to the experts and back, by levels */
            assert_int_equal(roofline_ep_free(c, w, z, 8, k, f), math > comms);
            if (k > z / 8)
                assert_int_equal(math > comms, f > a * (z - 8) / k);
        }
    /* Many more GPUs than experts of a token: F > 8 a. */
    assert_true(roofline_ep_free(c, w, 1e6, 8, 8, 8 * a * 1.001));
    assert_false(roofline_ep_free(c, w, 1e6, 8, 8, 8 * a * 0.99));
}

static void pipelines_send_while_they_fill(void **state)
{
    (void)state;
    NEAR(roofline_pp_comms_s(400e9, 1e6, 8192, 16, 8),
         2 * 1e6 * 8192 / (400e9 * 16) * 22); /* F55 */
    NEAR(roofline_pp_comms_s(400e9, 1e6, 8192, 1, 2), 2 * 1e6 * 8192 / 400e9);
}

/* F58 out of the preset's own shape, levels and axes: the same limit, and 976 tokens had. */
static void llama3_70b_on_4096_gpus_is_not_bound_by_communication(void **state)
{
    struct workload w = workload_of("llama3-70b");
    struct cost_levels l = levels_of("h100-superpod-4096");
    struct roof r[ROOF_KINDS];

    (void)state;
    roofline_workload(&w, &l, r);
    NEAR(r[ROOF_DP].has, 976);
    assert_int_equal(l.lv[r[ROOF_DP].level].role, FAB_ROLE_LEAF);
    /* 309 without the share that a NIC need not receive: (D - 1) / D of 64 replicas */
    NEAR(r[ROOF_DP].critical, 309 * 63 / 64.);
    assert_true(r[ROOF_DP].comms_s < r[ROOF_DP].math_s);
    assert_true(r[ROOF_TP].comms_s < r[ROOF_TP].math_s);
    assert_true(r[ROOF_PP].comms_s < r[ROOF_PP].math_s);
    assert_int_equal(l.lv[r[ROOF_TP].level].role, FAB_ROLE_NVSWITCH);
    assert_false(r[ROOF_EP].used);
    NEAR(roofline_bubble(&w), 7. / 27);
}

/* F50 and F52 from a workload: data parallel alone over two nodes. */
static void a_workload_of_data_parallel_alone_has_the_formulas_limit(void **state)
{
    static const char text[] =
        "device = \"h100\";\n"
        "model = { layers = 8; d_model = 8192; d_ff = 32768; heads = 64; vocabulary = 1; };\n"
        "training = { sequence = 4096; batch_tokens = 33554432; utilisation = 1.0; };\n"
        "parallel = { dp = %u; zero = %u; };\n";
    struct cost_levels l = levels_of("h100-superpod-1024");
    static struct fab_errors errs;
    struct roof r[ROOF_KINDS];
    struct workload w;
    char conf[512];

    (void)state;
    for (unsigned zero = 0; zero <= 3; zero++) {
        snprintf(conf, sizeof(conf), text, 8u, zero);
        assert_int_equal(workload_load_string(&w, conf, "dp.conf", &errs), 0);
        roofline_workload(&w, &l, r);
        NEAR(r[ROOF_DP].critical, 2200 * 7 / 8.);
        snprintf(conf, sizeof(conf), text, 256u, zero);
        assert_int_equal(workload_load_string(&w, conf, "dp.conf", &errs), 0);
        roofline_workload(&w, &l, r);
        NEAR(r[ROOF_DP].critical, 2475 * 31 / 32.);
    }
}

/* F51 from a workload: E / k times the tokens, but for attention, which is dense. */
static void experts_multiply_the_tokens_needed(void **state)
{
    static const char text[] =
        "device = \"h100\";\n"
        "model = { layers = 8; d_model = 1024; d_ff = 65536; heads = 8; vocabulary = 1;\n"
        "attention = 1; experts = 128; experts_per_token = 4; };\n"
        "training = { sequence = 4096; batch_tokens = 33554432; utilisation = 1.0; };\n"
        "parallel = { dp = 1024; };\n";
    struct cost_levels l = levels_of("h100-superpod-1024");
    static struct fab_errors errs;
    struct roof r[ROOF_KINDS];
    struct workload w;

    (void)state;
    assert_int_equal(workload_load_string(&w, text, "moe.conf", &errs), 0);
    roofline_workload(&w, &l, r);
    NEAR(r[ROOF_DP].critical, 79200 * 127 / 128.);
}

/* F56: DeepSeek V3's experts, 64 GPUs wide over 8 nodes: NICs bind its all-to-all. */
static void experts_of_deepseek_v3_are_bound_by_nics(void **state)
{
    struct workload w = workload_of("deepseek-v3");
    struct cost_levels l = levels_of("h100-superpod-2048");
    struct roof r[ROOF_KINDS];

    (void)state;
    NEAR(device_nvlink_Bps(w.device), 300e9); /* F56: H800 */
    roofline_workload(&w, &l, r);
    assert_true(r[ROOF_EP].used);
    assert_int_equal(l.lv[r[ROOF_EP].level].role, FAB_ROLE_LEAF);
    /* F54 with the tokens of the 64: dispatch and combine, forward and backward, of 58 layers on 16
     * stages. The router lets a token's 8 experts be in 4 of the 8 nodes. */
    NEAR(r[ROOF_EP].comms_s,
         2 * 58 / 16. * roofline_ep_comms_s(400e9, 64, 8, 4096. * 15360 / 2, 4, 7168));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_need_their_intensity),
        cmocka_unit_test(worked_kernels_of_one_gpu),
        cmocka_unit_test(data_parallel_needs_tokens),
        cmocka_unit_test(tensor_parallel_needs_wide_layers),
        cmocka_unit_test(expert_parallel_by_its_formulas),
        cmocka_unit_test(pipelines_send_while_they_fill),
        cmocka_unit_test(llama3_70b_on_4096_gpus_is_not_bound_by_communication),
        cmocka_unit_test(a_workload_of_data_parallel_alone_has_the_formulas_limit),
        cmocka_unit_test(experts_multiply_the_tokens_needed),
        cmocka_unit_test(experts_of_deepseek_v3_are_bound_by_nics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
