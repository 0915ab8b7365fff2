/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/gpu_device.h"

#include <stddef.h>
#include <string.h>

/*
 * Data sheets of NVIDIA A100, H100, H200 and B200 (SXM) and of DGX A100, H100, B200 and GB200
 * NVL72; Google Cloud's page of TPU v5p. The H800 is an H100 with fewer NVLinks, as DeepSeek
 * trained on. A TPU v5p has no switch: its links are those of a 3-D torus, and its "node" is
 * itself.
 */
static const struct gpu_device devices[] = {
    {.name = "a100",
     .bf16_flops = 3.1e14,
     .hbm_Bps = 2.0e12,
     .hbm_bytes = 80e9,
     .link_Bps = 25e9,
     .links = 12,
     .gpus = 8,
     .nvswitches = 6,
     .nic_Bps = 25e9,
     .fp32_cores = 6912},
    {.name = "h100",
     .bf16_flops = 9.9e14,
     .hbm_Bps = 3.35e12,
     .hbm_bytes = 80e9,
     .link_Bps = 25e9,
     .links = 18,
     .gpus = 8,
     .nvswitches = 4,
     .nic_Bps = 50e9,
     .fp32_cores = 16896,
     .fp8 = true},
    {.name = "h800",
     .bf16_flops = 9.9e14,
     .hbm_Bps = 3.35e12,
     .hbm_bytes = 80e9,
     .link_Bps = 25e9,
     .links = 12,
     .gpus = 8,
     .nvswitches = 4,
     .nic_Bps = 50e9,
     .fp32_cores = 16896,
     .fp8 = true},
    {.name = "h200",
     .bf16_flops = 9.9e14,
     .hbm_Bps = 4.8e12,
     .hbm_bytes = 141e9,
     .link_Bps = 25e9,
     .links = 18,
     .gpus = 8,
     .nvswitches = 4,
     .nic_Bps = 50e9,
     .fp32_cores = 16896,
     .fp8 = true},
    {.name = "b200",
     .bf16_flops = 2.25e15,
     .fp4_flops = 9.0e15,
     .hbm_Bps = 8.0e12,
     .hbm_bytes = 192e9,
     .link_Bps = 50e9,
     .links = 18,
     .gpus = 8,
     .nvswitches = 2,
     .nic_Bps = 50e9,
     .fp32_cores = 18944,
     .fp8 = true},
    {.name = "gb200",
     .bf16_flops = 2.25e15,
     .fp4_flops = 9.0e15,
     .hbm_Bps = 8.0e12,
     .hbm_bytes = 192e9,
     .link_Bps = 50e9,
     .links = 18,
     .gpus = 72,
     .nvswitches = 18,
     .nic_Bps = 50e9,
     .fp32_cores = 18944,
     .fp8 = true},
    {.name = "tpu-v5p",
     .bf16_flops = 4.59e14,
     .hbm_Bps = 2.77e12,
     .hbm_bytes = 95e9,
     .link_Bps = 90e9,
     .links = 6,
     .gpus = 1},
};
#define N_DEVICES (sizeof(devices) / sizeof(devices[0]))

const struct gpu_device *device_at(unsigned i)
{
    return i < N_DEVICES ? &devices[i] : NULL;
}

double device_flops(const struct gpu_device *d, enum dev_type t)
{
    switch (t) {
    case DEV_BF16:
        return d->bf16_flops;
    case DEV_FP8:
        return d->fp8 ? 2 * d->bf16_flops : 0;
    case DEV_FP4:
        return d->fp4_flops;
    default:
        return 0; /* outside the matrix units */
    }
}

double device_nvlink_Bps(const struct gpu_device *d)
{
    return d->links * d->link_Bps;
}

const char *dev_type_name(enum dev_type t)
{
    static const char *const names[] = {"fp32", "bf16", "fp8", "fp4"};

    return names[t];
}

double dev_type_bytes(enum dev_type t)
{
    static const double bytes[] = {4, 2, 1, 0.5};

    return bytes[t];
}
