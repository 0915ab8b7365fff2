/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties of GPUs and of the nodes that they are sold in, from vendors' data sheets. Bandwidths
 * are bytes per second and direction, rates FLOP/s of dense matrix multiplication.
 */
#ifndef TRIB_FABRIC_GPU_DEVICE_H
#define TRIB_FABRIC_GPU_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* Number types with different rates. fp16 is as bf16. */
enum dev_type { DEV_FP32, DEV_BF16, DEV_FP8, DEV_FP4, DEV_TYPES };

struct gpu_device {
    const char *name;
    double bf16_flops; /* fp8 is twice that if supported */
    double fp4_flops;  /* 0: none */
    double hbm_Bps, hbm_bytes;
    double link_Bps;           /* of one NVLink */
    uint32_t links;            /* of a GPU */
    uint32_t gpus, nvswitches; /* of a node */
    double nic_Bps;            /* of one port into the scale-out network; a GPU has one */
    uint32_t fp32_cores;       /* CUDA cores; each makes a fused multiply-add a clock */
    bool fp8;
};

/* Ports of a scale-out switch of this generation (NDR InfiniBand, 400G Ethernet) and what a port
 * carries. */
#define DEV_SWITCH_PORTS 64u
#define DEV_PORT_BPS     50e9
/* PCIe 5.0: 32 GT/s a lane, without the 1.5 % of its 128b/130b code. */
#define DEV_PCIE5_LANE_BPS 4e9

/* Entry i, NULL beyond the last. */
const struct gpu_device *device_at(unsigned i);
/* 0: the device has no such type. */
double device_flops(const struct gpu_device *d, enum dev_type t);
/* Bandwidth between a GPU and its NVSwitches, one direction. */
double device_nvlink_Bps(const struct gpu_device *d);

const char *dev_type_name(enum dev_type t); /* "bf16" */
double dev_type_bytes(enum dev_type t);

#endif
