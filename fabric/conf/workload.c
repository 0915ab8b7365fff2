/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/conf/workload.h"

uint32_t workload_degree(const struct workload *w, enum work_axis a)
{
    return a == WORK_TP ? w->tp : a == WORK_DP ? w->dp : w->pp;
}

uint64_t workload_stride(const struct workload *w, enum work_axis a)
{
    uint64_t stride = 1;

    for (unsigned i = 0; i < WORK_AXES && w->order[i] != a; i++)
        stride *= workload_degree(w, w->order[i]);
    return stride;
}

uint64_t workload_expert_stride(const struct workload *w)
{
    return workload_stride(w, w->tp > 1 ? WORK_TP : WORK_DP);
}

uint64_t workload_gpus(const struct workload *w)
{
    return (uint64_t)w->tp * w->dp * w->pp;
}

uint64_t workload_microbatch_tokens(const struct workload *w)
{
    return w->batch_tokens / ((uint64_t)w->dp * w->microbatches);
}

uint32_t workload_stage_layers(const struct workload *w)
{
    return (w->layers + w->pp - 1) / w->pp;
}

static double ff(const struct workload *w, double d_ff)
{
    return (w->gated ? 3.0 : 2.0) * w->d_model * d_ff;
}

double workload_dense_ff(const struct workload *w)
{
    return ff(w, w->d_ff);
}

double workload_expert_ff(const struct workload *w, bool active)
{
    double n = (active ? w->top_k : w->experts) + w->shared;

    return w->experts ? n * ff(w, w->expert_d_ff) + (double)w->d_model * w->experts : 0;
}

static double params(const struct workload *w, bool active)
{
    double moe = w->layers - w->dense_layers;

    return w->layers * w->attention + w->dense_layers * workload_dense_ff(w) +
           moe * workload_expert_ff(w, active) + (w->tied ? 1.0 : 2.0) * w->vocabulary * w->d_model;
}

double workload_params(const struct workload *w)
{
    return params(w, false);
}

double workload_active_params(const struct workload *w)
{
    return params(w, true);
}

double workload_step_flops(const struct workload *w)
{
    return 6 * workload_active_params(w) * (double)w->batch_tokens;
}

double workload_total_flops(const struct workload *w)
{
    return 6 * workload_active_params(w) * w->tokens;
}

double workload_total_seconds(const struct workload *w)
{
    double rate = device_flops(w->device, w->type) * w->utilisation * (double)workload_gpus(w);

    return workload_total_flops(w) / rate;
}

double workload_state_bytes(const struct workload *w)
{
    return 10 * workload_params(w);
}

const char *work_axis_name(enum work_axis a)
{
    static const char *const names[] = {"tp", "dp", "pp"};

    return names[a];
}

const char *work_group_name(enum work_group g)
{
    static const char *const names[] = {"tp", "dp", "ep", "pp"};

    return names[g];
}
