/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of multicast objects: multicast.c (operations), multicast_open.c. Their
 * driver's calls came with CUDA 12.1. */
#ifndef TRIB_HOST_KERNELS_MULTICAST_PRIV_H
#define TRIB_HOST_KERNELS_MULTICAST_PRIV_H

#ifdef KERNEL_IMAGES
#include <cuda.h>
#if CUDA_VERSION >= 12010
#define HAVE_MULTICAST

#include "host/kernels/cuda_priv.h"
#include "host/kernels/multicast.h"

#define VM_CALLS(X)                                                                                \
    X(cuMulticastCreate)                                                                           \
    X(cuMulticastAddDevice)                                                                        \
    X(cuMulticastBindMem)                                                                          \
    X(cuMulticastUnbind)                                                                           \
    X(cuMulticastGetGranularity)                                                                   \
    X(cuMemGetAllocationGranularity)                                                               \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)                                                                              \
    X(cuStreamWaitEvent)

struct multicast_member {
    struct device *d;
    CUmemGenericAllocationHandle memory; /* 0: none */
    bool bound;
    CUdeviceptr own, all; /* its memory, and the multicast object; 0: not mapped */
    CUevent arrived;      /* this member arrived at the last barrier */
    uint64_t given;       /* device_given() at that barrier */
};

struct multicast {
    unsigned n;
    size_t bytes, align;
    struct {
        VM_CALLS(FIELD)
    } cu;
    CUmemGenericAllocationHandle object; /* 0: none */
    CUevent all_arrived;                 /* at the last barrier, on GPU 0's stream */
    struct multicast_member *member;
};

#endif
#endif
#endif
