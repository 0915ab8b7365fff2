/* SPDX-License-Identifier: BSD-3-Clause */
/* The bodies as kernels: the grid gives a thread's number and the number of threads. */
#ifndef TRIB_HOST_KERNELS_GRID_H
#define TRIB_HOST_KERNELS_GRID_H

#include "host/kernels/body.h"

static __device__ __forceinline__ uint64_t grid_at(void)
{
    return (uint64_t)blockIdx.x * KERNEL_THREADS + threadIdx.x;
}

static __device__ __forceinline__ uint64_t grid_step(void)
{
    return (uint64_t)gridDim.x * KERNEL_THREADS;
}

#define KERNEL extern "C" __global__ void __launch_bounds__(KERNEL_THREADS)

#define REDUCE_KERNEL(NAME)                                                                        \
    KERNEL reduce_##NAME(const __grid_constant__ struct reduce_args r)                             \
    {                                                                                              \
        body_##NAME(&r, grid_at(), grid_step());                                                   \
    }
#define REDUCTION_KERNEL(NAME, E, ACC, IN, DO, OUT)                                                \
    REDUCTION(NAME, E, ACC, IN, DO, OUT)                                                           \
    REDUCE_KERNEL(NAME)
#define AVERAGE_KERNEL(NAME, E, ACC, IN, DIV, OUT)                                                 \
    AVERAGE(NAME, E, ACC, IN, DIV, OUT)                                                            \
    REDUCE_KERNEL(NAME)

#endif
