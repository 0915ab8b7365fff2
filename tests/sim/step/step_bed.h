/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small training step on two nodes of four GPUs, and what is expected of it: the times of its
 * collectives, which the test measures itself, added up by their definitions. A test has a pool.
 */
#ifndef TESTS_SIM_STEP_BED_H
#define TESTS_SIM_STEP_BED_H

#include "collective/sched.h"
#include "host/coll/comm.h"
#include "sim/step/step.h"
#include "tests/fabric/device_named.h"
#include "tests/fabric/load.h"
#include "tests/support/captured.h"
#include "tests/support/eal.h"

#include <math.h>

#define SEED 5

static struct rte_mempool *pool;
static const volatile int go_on;
static const char *const methods[] = {"hosts", "nvswitches", "switches"};
enum { MATH = ROOF_KINDS, BUBBLE };

struct bed {
    struct fabric *f;
    struct workload w;
    struct step_opts o;
    /* what is expected */
    struct step_collective u[STEP_COLLECTIVES];
    unsigned n;
    struct roof roof[ROOF_KINDS];
    double math_s, bubble_s, comms_s[STEP_METHODS], step_s[STEP_METHODS];
    double kind_s[STEP_METHODS][ROOF_KINDS], gain_s[STEP_METHODS][ROOF_KINDS];
};

/* A training step whose collectives have the fabric to themselves. */
static inline void open_bed(struct bed *b, const char *more)
{
    char text[512];

    memset(b, 0, sizeof(*b));
    snprintf(
        text, sizeof(text),
        "name = \"small\"; mtu = 4096; ecmp = \"balanced\"; %s gpu_nodes = { nodes = 2; gpus = "
        "4; planes = ( 9, 9 ); nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; }; nic = { "
        "rate = \"400Gb/s\"; latency = \"300ns\"; }; }; rails = { leaves = 4; spines = 1; "
        "spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };",
        more);
    b->f = load_text(text);
    b->w = (struct workload){.path = "w.conf",
                             .name = "toy",
                             .device = device_find("h100"),
                             .layers = 4,
                             .d_model = 256,
                             .d_ff = 1024,
                             .heads = 4,
                             .kv_heads = 4,
                             .head_dim = 64,
                             .vocabulary = 1000,
                             .attention = 4 * 256 * 256,
                             .dense_layers = 4,
                             .type = DEV_BF16,
                             .wire = DEV_BF16,
                             .sequence = 64,
                             .batch_tokens = 1024,
                             .utilisation = 0.4,
                             .tp = 2,
                             .dp = 2,
                             .pp = 2,
                             .ep = 1,
                             .zero = 1,
                             .microbatches = 2,
                             .order = {WORK_TP, WORK_DP, WORK_PP},
                             .algorithm_line = 9};
    b->o =
        (struct step_opts){.fab = b->f, .work = &b->w, .seed = SEED, .pool = pool, .stop = &go_on};
}

static inline void close_bed(struct bed *b)
{
    fabric_free(b->f);
}

static inline void with_experts(struct bed *b)
{
    b->w.dense_layers = 1;
    b->w.experts = 4;
    b->w.top_k = 2;
    b->w.shared = 1;
    b->w.expert_d_ff = 512;
    b->w.ep = 2;
}

/* ---- what is expected ---- */

static inline void measure(struct bed *b)
{
    struct cost_levels levels;
    char err[COMM_TEXT];
    double flops = 6 * workload_active_params(&b->w) * (double)b->w.batch_tokens;

    memset(b->kind_s, 0, sizeof(b->kind_s));
    b->n = step_collectives(&b->w, b->u);
    assert_int_equal(step_name_algorithms(&b->w, b->u, b->n, err), 0);
    if (step_measure(b->f, b->u, b->n, pool, SEED, &go_on, err))
        fail_msg("%s", err);
    cost_levels(b->f, &levels);
    roofline_workload(&b->w, &levels, b->roof);
    b->math_s =
        flops / (device_flops(b->w.device, b->w.type) * (double)(b->w.tp * b->w.dp * b->w.pp));
    for (unsigned m = 0; m < STEP_METHODS; m++) {
        struct step_cost c = step_cost(&b->w, b->u, b->n, (enum step_method)m), bare = c;

        b->step_s[m] = step_seconds(&c);
        b->comms_s[m] = 0;
        for (unsigned i = 0; i < b->n; i++) {
            b->comms_s[m] += b->u[i].timing[m].s * b->u[i].times;
            b->kind_s[m][b->u[i].kind] += b->u[i].timing[m].s * b->u[i].times;
        }
        for (unsigned k = 0; k < ROOF_KINDS; k++) {
            struct step_cost one = c;

            one.comms[k] = bare.comms[k] = 0;
            b->gain_s[m][k] = b->step_s[m] - step_seconds(&one);
        }
        b->bubble_s = step_seconds(&bare) - b->math_s;
    }
}

static inline int longest(const struct bed *b, unsigned m)
{
    int binds = b->bubble_s > b->math_s ? BUBBLE : MATH;
    double most = fmax(b->bubble_s, b->math_s);

    for (int k = 0; k < ROOF_KINDS; k++)
        if (b->gain_s[m][k] > most) {
            most = b->gain_s[m][k];
            binds = k;
        }
    return binds;
}

static inline const char *binds(const struct bed *b, unsigned m)
{
    int k = longest(b, m);

    return k == MATH ? "computing" : k == BUBBLE ? "pipeline" : roof_kind_name((enum roof_kind)k);
}

#endif
