/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rooflines: when computing takes longer than memory or communication and so hides it. Takes FLOP/s and
 * bytes per second (per direction); gives seconds, tokens and degrees. C: FLOP/s of one GPU; W: the bandwidth
 * with which a node, or within a node a GPU, reaches the others.
 */
#ifndef TRIB_FABRIC_THEORY_ROOFLINE_H
#define TRIB_FABRIC_THEORY_ROOFLINE_H

#include "fabric/conf/workload.h"
#include "fabric/theory/cost.h"

/* ---- one GPU ---- */

/* FLOPs that a matrix multiplication must make for each byte that it reads or writes (F45). */
double roofline_intensity(const struct gpu_device *d, enum dev_type t);
/* [m, k] x [k, n]: the longer of computing and moving each matrix once (F46). *memory: moving takes
 * longer. */
double roofline_matmul_s(const struct gpu_device *d, enum dev_type t, double m, double k, double n,
                         bool *memory);
/* c = a + b over n fp32 (F47): memory is the limit. */
double roofline_add_s(const struct gpu_device *d, double n);

/* ---- closed forms for a feed-forward block of two bf16 matrices [D, F] ---- */

/* Tokens per GPU above which data parallelism or FSDP is free: C / W (F50); times E / k for a mixture of
 * experts (F51), times (X - 1) / X over X nodes (F52; 0: many), over S pipeline stages (F58). */
double roofline_dp_tokens(double c, double w, double experts, double k, double nodes,
                          double stages);
/* Degree below which tensor parallelism is free (F53). */
double roofline_tp_degree(double c, double w, double d_ff);
/* Expert parallelism over Z GPUs in nodes of `gpus` (F54): tokens B, sizes D and F, k experts a
 * token. */
double roofline_ep_math_s(double c, double z, double tokens, double k, double d, double f);
double roofline_ep_comms_s(double w, double z, double gpus, double tokens, double k, double d);
/* F54's conditions: whether communication is free. */
bool roofline_ep_free(double c, double w, double z, double gpus, double k, double f);
/* Activations through S stages in M microbatches (F55), B tokens of D. */
double roofline_pp_comms_s(double w, double tokens, double d, double microbatches, double stages);

/* ---- a whole workload on a fabric ---- */

enum roof_kind { ROOF_DP, ROOF_TP, ROOF_EP, ROOF_PP, ROOF_KINDS };

/* One kind of parallelism over one step: the communication of one GPU, and its computing that can hide
 * it. */
struct roof {
    bool used;
    enum roof_kind kind;
    uint64_t degree;
    double math_s, comms_s;
    double sent_s;        /* the part of comms_s in which one GPU itself sends */
    unsigned level;       /* the fabric's level where communication takes longest */
    double has, critical; /* DP: tokens per GPU, and how many hide communication; TP: degree, and
                             the largest that is hidden; otherwise 0 */
};

/* rows: [ROOF_KINDS]. The fabric must have as many GPUs as the workload. Computing runs at the device's
 * peak: communication that is hidden at the peak is hidden at any utilisation. */
void roofline_workload(const struct workload *w, const struct cost_levels *l,
                       struct roof rows[ROOF_KINDS]);
/* Share of time in which a stage of the pipeline is idle: (S - 1) / (M + S - 1). */
double roofline_bubble(const struct workload *w);
const char *roof_kind_name(enum roof_kind k); /* "data" */

#endif
