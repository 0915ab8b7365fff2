/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/step/step.h"

#include "base/assert.h"

static void step_collectives_add(struct step_collective *u, unsigned *n,
                                 struct step_collective collective)
{
    if (collective.degree < 2 || !collective.bytes)
        return;
    T_ASSERT(*n < STEP_COLLECTIVES, "a step has more kinds of collectives than its array");
    u[(*n)++] = collective;
}

/* Collectives on gradients and weights of `params` parameters, which each GPU of the group has. */
static void add_data(struct step_collective *u, unsigned *n, const struct workload *w,
                     double params, struct step_collective collective)
{
    collective.kind = ROOF_DP;
    collective.bytes = (uint64_t)(params * dev_type_bytes(w->wire));
    collective.times = 1;
    collective.coll = w->zero ? COLL_REDUCE_SCATTER : COLL_ALLREDUCE;
    step_collectives_add(u, n, collective);
    collective.coll = COLL_ALLGATHER;
    collective.times = w->zero == 3 ? 2 : 1;
    if (w->zero)
        step_collectives_add(u, n, collective);
}

/* GPUs that a token is sent to: those of its experts, or one in each of its nodes, which passes it
 * on by NVLink meanwhile. A group within a node has no such limit. */
static uint32_t token_copies(const struct workload *w)
{
    uint32_t k = w->top_k;
    bool beyond = (uint64_t)w->ep * workload_expert_stride(w) > w->device->gpus;

    if (beyond && w->token_nodes && w->token_nodes < k)
        k = w->token_nodes;
    return k < w->ep ? k : w->ep;
}

unsigned step_collectives(const struct workload *w, struct step_collective u[STEP_COLLECTIVES])
{
    double wire = dev_type_bytes(w->wire), layers = workload_stage_layers(w), m = w->microbatches,
           tokens = (double)workload_microbatch_tokens(w), activations = tokens * w->d_model * wire,
           moe = w->layers - w->dense_layers;
    double experts = moe * ((double)w->experts / (w->experts ? w->experts + w->shared : 1)) *
                     workload_expert_ff(w, false),
           dense = workload_params(w) - experts;
    uint32_t copies = token_copies(w);
    unsigned n = 0;

    step_collectives_add(u, &n,
                         (struct step_collective){.kind = ROOF_TP,
                                                  .coll = COLL_ALLREDUCE,
                                                  .degree = w->tp,
                                                  .stride = workload_stride(w, WORK_TP),
                                                  .bytes = (uint64_t)activations,
                                                  .times = 4 * layers * m});
    step_collectives_add(u, &n,
                         (struct step_collective){.kind = ROOF_EP,
                                                  .coll = COLL_ALLTOALL,
                                                  .degree = w->ep,
                                                  .stride = workload_expert_stride(w),
                                                  .bytes = (uint64_t)(activations / w->tp * copies),
                                                  .times = 4 * (layers < moe ? layers : moe) * m});
    add_data(u, &n, w, dense / w->pp / w->tp,
             (struct step_collective){.degree = w->dp, .stride = workload_stride(w, WORK_DP)});
    if (w->experts)
        add_data(u, &n, w, experts / w->pp / w->ep,
                 (struct step_collective){.experts = true,
                                          .degree = w->dp * w->tp / w->ep,
                                          .stride = workload_expert_stride(w) * w->ep});
    step_collectives_add(u, &n,
                         (struct step_collective){.kind = ROOF_PP,
                                                  .coll = COLL_SENDRECV,
                                                  .degree = w->pp,
                                                  .stride = workload_stride(w, WORK_PP),
                                                  .bytes = (uint64_t)(activations / w->tp),
                                                  .times = 2 * m});
    for (unsigned i = 0; i < n; i++)
        u[i].gpus = workload_gpus(w);
    return n;
}

struct step_cost step_cost(const struct workload *w, const struct step_collective *u, unsigned n,
                           enum step_method method)
{
    unsigned layers = workload_stage_layers(w);
    /* Two FLOPs a token and parameter forward, four backward; embeddings are spread over layers. */
    double math = 2 * workload_active_params(w) / w->layers / w->tp *
                  (double)workload_microbatch_tokens(w) / device_flops(w->device, w->type);
    struct step_cost c = {.layers = layers,
                          .stages = w->pp,
                          .microbatches = w->microbatches,
                          .forward = math,
                          .backward = 2 * math,
                          .zero = w->zero};

    for (unsigned i = 0; i < n; i++) {
        double s = u[i].timing[method].s;

        if (u[i].kind == ROOF_TP || u[i].kind == ROOF_EP)
            c.comms[u[i].kind] += s * u[i].times / (2.0 * layers * w->microbatches);
        else if (u[i].kind == ROOF_PP)
            c.comms[ROOF_PP] += s;
        else /* an all-reduce is two passes; reduce-scatter and all-gather are taken as alike */
            c.comms[ROOF_DP] += s * u[i].times / layers / (w->zero == 3 ? 3 : 2);
    }
    return c;
}
