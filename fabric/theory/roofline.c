/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/theory/roofline.h"

static double roofline_longer(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

double roofline_intensity(const struct gpu_device *d, enum dev_type t)
{
    return device_flops(d, t) / d->hbm_Bps;
}

double roofline_matmul_s(const struct gpu_device *d, enum dev_type t, double m, double k, double n,
                         bool *memory)
{
    double math = 2 * m * k * n / device_flops(d, t),
           move = dev_type_bytes(t) * (m * k + k * n + m * n) / d->hbm_Bps;

    *memory = move > math;
    return roofline_longer(math, move);
}

double roofline_add_s(const struct gpu_device *d, double n)
{
    return 3 * dev_type_bytes(DEV_FP32) * n / d->hbm_Bps;
}

double roofline_dp_tokens(double c, double w, double experts, double k, double nodes, double stages)
{
    return c / w * experts / k * (nodes > 0 ? (nodes - 1) / nodes : 1) / stages;
}

double roofline_tp_degree(double c, double w, double d_ff)
{
    return d_ff * w / c;
}

double roofline_ep_math_s(double c, double z, double tokens, double k, double d, double f)
{
    return 4 * tokens * k * d * f / (z * c);
}

double roofline_ep_comms_s(double w, double z, double gpus, double tokens, double k, double d)
{
    return 4 * tokens * d * (z - gpus) / (w * z) * cost_share(COST_SPARSE, k, z / gpus);
}

/* T_math > T_comms. If k > Z / gpus: F > C / W (Z - gpus) / k; otherwise F > C / W gpus (Z - gpus) / Z, which
 * is F54's second condition for Z much larger than a node. */
bool roofline_ep_free(double c, double w, double z, double gpus, double k, double f)
{
    return f > c / w * (z - gpus) / k * smaller(gpus * k / z, 1);
}

double roofline_pp_comms_s(double w, double tokens, double d, double microbatches, double stages)
{
    return 2 * tokens * d / (w * microbatches) * (microbatches + stages - 2);
}

double roofline_bubble(const struct workload *w)
{
    return (w->pp - 1.0) / (w->microbatches + w->pp - 1.0);
}

const char *roof_kind_name(enum roof_kind k)
{
    static const char *const names[] = {"data", "tensor", "expert", "pipeline"};

    return names[k];
}
