/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where computing takes longer than memory or communication and so hides it. FLOP/s and bytes per
 * second (per direction) in, seconds, tokens and degrees out. C is FLOP/s of one GPU; W the
 * bandwidth by which a node, or in a node a GPU, reaches the others.
 */
#ifndef TRIB_FABRIC_THEORY_ROOFLINE_H
#define TRIB_FABRIC_THEORY_ROOFLINE_H

#include "fabric/conf/workload.h"
#include "fabric/theory/cost.h"

/* ---- one GPU ---- */

/* FLOPs that a matrix multiplication must make of each byte it reads or writes (F45). */
double roofline_intensity(const struct gpu_device *d, enum dev_type t);
/* [m, k] x [k, n]: the longer of computing and moving each matrix once (F46); *memory: memory is
 * the longer one. */
double roofline_matmul_s(const struct gpu_device *d, enum dev_type t, double m, double k, double n,
                         bool *memory);
/* c = a + b over n fp32 (F47): memory binds. */
double roofline_add_s(const struct gpu_device *d, double n);

/* ---- closed forms for a feed-forward block of two bf16 matrices [D, F] ---- */

/* Tokens per GPU above which data parallel or FSDP is free: C / W (F50); times E / k for a mixture
 * of experts (F51), times (X - 1) / X over X nodes (F52; 0: many), over S pipeline stages (F58). */
double roofline_dp_tokens(double c, double w, double experts, double k, double nodes,
                          double stages);
/* Degree below which tensor parallel is free (F53). */
double roofline_tp_degree(double c, double w, double d_ff);
/* Expert parallel over Z GPUs in nodes of `gpus` (F54): tokens B, sizes D and F, k experts a
 * token. */
double roofline_ep_math_s(double c, double z, double tokens, double k, double d, double f);
double roofline_ep_comms_s(double w, double z, double gpus, double tokens, double k, double d);
/* F54's conditions: whether communication is free. */
bool roofline_ep_free(double c, double w, double z, double gpus, double k, double f);
/* Activations through S stages in M microbatches (F55), B tokens of D. */
double roofline_pp_comms_s(double w, double tokens, double d, double microbatches, double stages);

/* ---- a whole workload on a fabric ---- */

enum roof_kind { ROOF_DP, ROOF_TP, ROOF_EP, ROOF_PP, ROOF_KINDS };

/* One kind of parallelism over one step: its communication and the computing that can hide it, both
 * of one GPU. */
struct roof {
    bool used;
    enum roof_kind kind;
    uint64_t degree;
    double math_s, comms_s;
    double sent_s;  /* of comms_s what one GPU sends: a message's way through a pipeline has other
                       stages' too, and one GPU sends more than one stands for */
    unsigned level; /* of the fabric: the level where communication takes longest */
    double has, critical; /* DP: tokens per GPU, and how many hide communication; TP: degree, and
                             the largest that is hidden; else 0 */
};

/* rows: [ROOF_KINDS]. The fabric must have as many GPUs. Computing runs at the device's peak:
 * communication hidden at the peak is hidden at any utilisation. */
void roofline_workload(const struct workload *w, const struct cost_levels *l,
                       struct roof rows[ROOF_KINDS]);
/* Share of time in which a stage of the pipeline is idle: (S - 1) / (M + S - 1). */
double roofline_bubble(const struct workload *w);
const char *roof_kind_name(enum roof_kind k); /* "data" */

#endif
