/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A training workload: a transformer, its training and its parallelism, from a libconfig file
 * (docs/conf-plans.md). Plain data, checked. Counts of parameters and FLOPs are computed from the shape.
 *
 * There are dp * tp * pp GPUs. Experts are spread over ep of the dp * tp GPUs of a pipeline stage,
 * so dp * tp / ep GPUs hold copies of the same experts. A global rank is
 *
 *   index(order[0]) + degree(order[0]) * (index(order[1]) + degree(order[1]) * index(order[2]))
 *
 * order[0] usually is tensor parallelism, which then stays within a node.
 */
#ifndef TRIB_FABRIC_CONF_WORKLOAD_H
#define TRIB_FABRIC_CONF_WORKLOAD_H

#include "fabric/fabric.h"
#include "fabric/gpu_device.h"

enum work_axis { WORK_TP, WORK_DP, WORK_PP, WORK_AXES };
/* The groups that run collectives: those of the axes, and experts. */
enum work_group { WORK_GROUP_TP, WORK_GROUP_DP, WORK_GROUP_EP, WORK_GROUP_PP, WORK_GROUPS };

struct workload {
    char path[256];
    char name[FAB_NAME]; /* `name` in the file, default the file's stem */
    const struct gpu_device *device;

    /* The model. d_ff: of dense layers; gated: three matrices of d_model * d_ff instead of two. */
    uint32_t layers, d_model, d_ff, heads, kv_heads, head_dim, vocabulary;
    bool gated, tied;      /* tied: one matrix for input and output embeddings */
    double attention;      /* parameters of one layer's attention */
    uint32_t experts;      /* of a layer; 0: none, and the five below are 0 too */
    uint32_t top_k;        /* experts that a token goes to */
    uint32_t token_nodes;  /* nodes that a token goes to at most, 0: any */
    uint32_t shared;       /* experts that every token goes to, in addition */
    uint32_t expert_d_ff;  /* of one expert */
    uint32_t dense_layers; /* layers without experts; without experts: all */

    /* Training. */
    enum dev_type type, wire; /* of arithmetic; of transfers */
    uint32_t sequence;        /* tokens */
    uint64_t batch_tokens;    /* of one step, all GPUs */
    double tokens;            /* of the whole training, 0: unknown */
    double utilisation;       /* share of the device's FLOP/s, 0..1, measured or expected */

    /* Parallelism. */
    uint32_t tp, dp, pp, ep;
    uint32_t zero;                         /* stage 0 to 3; 3 is FSDP */
    uint32_t microbatches;                 /* of a pipeline, per step and replica */
    enum work_axis order[WORK_AXES];       /* innermost first */
    char algorithm[WORK_GROUPS][FAB_NAME]; /* of collectives, as --algo; "": the fastest */
    int algorithm_line;                    /* their line in the file */
};

/* 0, or -EINVAL with all mistakes in errs. */
int workload_load(struct workload *w, const char *path, struct fab_errors *errs);
int workload_load_string(struct workload *w, const char *text, const char *path,
                         struct fab_errors *errs);

uint32_t workload_degree(const struct workload *w, enum work_axis a);
/* Distance in ranks from one member of an axis to the next. */
uint64_t workload_stride(const struct workload *w, enum work_axis a);
/* The same for an expert group: experts are spread over tp, then dp. */
uint64_t workload_expert_stride(const struct workload *w);
uint64_t workload_gpus(const struct workload *w);
/* Tokens of one microbatch of one replica; the loader has checked that the division is exact. */
uint64_t workload_microbatch_tokens(const struct workload *w);
/* Layers of the fullest pipeline stage. */
uint32_t workload_stage_layers(const struct workload *w);

/* Parameters. Those of a layer: its attention, its dense feed-forward block, all its experts with
 * router; `active` counts the experts that one token goes to. Norms and biases are left out
 * (below 0.1 %). */
double workload_dense_ff(const struct workload *w);
double workload_expert_ff(const struct workload *w, bool active);
double workload_params(const struct workload *w);
double workload_active_params(const struct workload *w);

/* 6 FLOPs a token and active parameter: two forward, four backward (Kaplan et al. 2020, without the
 * attention's own products). For one step of all GPUs, and for the whole training (0: unknown). */
double workload_step_flops(const struct workload *w);
double workload_total_flops(const struct workload *w);
/* Seconds of the whole training at the given utilisation; 0: tokens unknown. */
double workload_total_seconds(const struct workload *w);
/* Weights in bf16 and Adam's two moments in fp32: 10 bytes a parameter, before sharding. */
double workload_state_bytes(const struct workload *w);

const char *work_axis_name(enum work_axis a); /* "tp" */
const char *work_group_name(enum work_group g);

#endif
