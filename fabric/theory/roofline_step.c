/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rooflines of a whole workload: the bytes that each kind of parallelism sends in one step, over
 * the levels that its ranks span, and the computing that can hide them.
 *
 *   data      gradients: reduce-scatter and all-gather, behind the backward pass (ZeRO 0 to 2); with
 *             ZeRO 3 weights once more, behind the forward pass too. Copies of experts are spread over ep
 *             times fewer GPUs
 *   tensor    activations: all-gather and reduce-scatter around attention and around the feed-forward
 *             block, forward and backward
 *   expert    tokens to the experts of each such layer and back, forward and backward
 *   pipeline  activations from stage to stage, forward and backward
 */
#include "fabric/theory/roofline.h"

static double peak(const struct workload *w)
{
    return device_flops(w->device, w->type) * (double)workload_gpus(w);
}

static const enum cost_way gather[FAB_MAX_LEVELS] = {COST_GATHER};

static struct roof data_parallel(const struct workload *w, const struct cost_levels *l)
{
    uint32_t copies = w->dp * w->tp / w->ep; /* copies of an expert */
    double experts = (w->layers - w->dense_layers) *
                     ((double)w->experts / (w->experts ? w->experts + w->shared : 1)) *
                     workload_expert_ff(w, false),
           wire = dev_type_bytes(w->wire), passes = w->zero == 3 ? 3 : 2;
    struct cost_axis dense_axis = {workload_stride(w, WORK_DP), w->dp},
                     expert_axis = {workload_expert_stride(w) * w->ep, copies};
    struct roof r = {.used = w->dp > 1, .kind = ROOF_DP, .degree = w->dp};
    double stages = w->pp, dense = workload_params(w) - experts;
    struct cost c, e;

    /* The Y GPUs between two replicas hold Y different shards. Other stages and tensor parallel ranks are
     * among them only if these axes are inner ones. */
    c = cost_through(l, dense_axis, wire * dense / (stages * w->tp) * (double)dense_axis.inner,
                     gather);
    e = cost_through(l, expert_axis, wire * experts / (stages * w->ep) * (double)expert_axis.inner,
                     gather);
    r.comms_s = passes * (c.s + e.s);
    r.level = c.s >= e.s ? c.binds : e.binds;
    r.math_s = workload_step_flops(w) / peak(w) * (w->zero == 3 ? 1 : 4.0 / 6);
    r.has = (double)w->batch_tokens / (double)workload_gpus(w);
    r.critical = r.has * r.comms_s / r.math_s;
    return r;
}

static struct roof tensor_parallel(const struct workload *w, const struct cost_levels *l)
{
    struct cost_axis a = {workload_stride(w, WORK_TP), w->tp};
    double tokens = (double)w->batch_tokens / w->dp;
    struct roof r = {.used = w->tp > 1, .kind = ROOF_TP, .degree = w->tp};
    struct cost c =
        cost_through(l, a, dev_type_bytes(w->wire) * tokens * w->d_model * (double)a.inner, gather);

    /* Each layer has two blocks, with an all-gather and a reduce-scatter each, forward and backward. */
    r.comms_s = 8.0 * w->layers / w->pp * c.s;
    r.level = c.binds;
    r.math_s = workload_step_flops(w) / peak(w);
    r.has = w->tp;
    r.critical = r.comms_s > 0 ? w->tp * r.math_s / r.comms_s : 0;
    return r;
}

static struct roof expert_parallel(const struct workload *w, const struct cost_levels *l)
{
    uint32_t moe = w->layers - w->dense_layers;
    struct cost_axis a = {workload_expert_stride(w), w->ep};
    struct roof r = {.used = w->ep > 1, .kind = ROOF_EP, .degree = w->ep};
    double tokens = (double)w->batch_tokens / ((double)w->dp * w->tp) * w->ep;
    struct cost c = {0};

    /* A token goes at most once to each child of a level, which forwards it: F24's array has a slot
     * for each of them (F54). */
    for (unsigned i = 0; i < l->n; i++) {
        double h = l->lv[i].below > a.inner ? l->lv[i].below / (double)a.inner : 1,
               shards = w->ep / h;
        uint32_t k =
            l->lv[i].role != FAB_ROLE_NVSWITCH && w->token_nodes && w->token_nodes < w->top_k
                ? w->token_nodes
                : w->top_k;
        struct cost one = cost_alltoall_forwarded(
            l, a, dev_type_bytes(w->wire) * tokens * w->d_model * (double)a.inner * shards,
            COST_SPARSE, k);

        if (one.level_s[i] > c.s) {
            c.s = one.level_s[i];
            c.binds = i;
        }
    }
    r.comms_s = 4.0 * moe / w->pp * c.s;
    r.level = c.binds;
    r.math_s = 6 * (double)w->batch_tokens * moe * workload_expert_ff(w, true) / peak(w);
    return r;
}

/* Bandwidth at a level of a GPU that sends to the next stage. If only a part of a child's GPUs is in the last
 * stage, only these send; below the first switches of the network by their own NICs. */
static double stage_Bps(const struct cost_levels *l, unsigned i, struct cost_axis a, bool first)
{
    const struct cost_level *v = &l->lv[i];

    if (first || v->role == FAB_ROLE_NVSWITCH || v->role == FAB_ROLE_HOST || a.inner >= v->below)
        return cost_gpu_Bps(l, i, a);
    return v->child_Bps / (double)a.inner;
}

static struct roof pipeline_parallel(const struct workload *w, const struct cost_levels *l)
{
    uint64_t stride = workload_stride(w, WORK_PP);
    struct cost_axis a = {stride, w->pp};
    struct roof r = {.used = w->pp > 1, .kind = ROOF_PP, .degree = w->pp};
    double tokens = (double)w->batch_tokens / w->dp, slowest = 0;
    bool first = true; /* first level of the network */

    /* Takes the narrowest level between neighbours. Each of tp GPUs sends its part. */
    for (unsigned i = 0; i < l->n; i++) {
        double bps = stage_Bps(l, i, a, first);

        first &= l->lv[i].role == FAB_ROLE_NVSWITCH;
        if (cost_children(l, i, a) <= 1 || (slowest > 0 && bps >= slowest))
            continue;
        slowest = bps;
        r.level = i;
    }
    if (slowest > 0) {
        r.comms_s =
            2 * dev_type_bytes(w->wire) / dev_type_bytes(DEV_BF16) *
            roofline_pp_comms_s(slowest * w->tp, tokens, w->d_model, w->microbatches, w->pp);
        r.sent_s = 2 * dev_type_bytes(w->wire) * tokens * w->d_model / (slowest * w->tp);
    }
    r.math_s = workload_step_flops(w) / peak(w);
    return r;
}

void roofline_workload(const struct workload *w, const struct cost_levels *l,
                       struct roof rows[ROOF_KINDS])
{
    rows[ROOF_DP] = data_parallel(w, l);
    rows[ROOF_TP] = tensor_parallel(w, l);
    rows[ROOF_EP] = expert_parallel(w, l);
    for (int k = 0; k < ROOF_KINDS; k++)
        if (k != ROOF_PP)
            rows[k].sent_s = rows[k].comms_s;
    rows[ROOF_PP] = pipeline_parallel(w, l);
}
