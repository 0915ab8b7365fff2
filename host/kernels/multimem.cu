/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions by the NVSwitch, for sm_90 and later only (and CUDA 12.1). Each thread processes units
 * of its GPU's part, which no other thread of any GPU accesses meanwhile. The ends of kernels and
 * the events between them (multicast.c) order earlier and later accesses, because the multicast
 * address and the members' own addresses are aliases of the same memory.
 */
#include "host/kernels/grid.h"
#include "host/kernels/multimem.h"

#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 1)
#define LD "multimem.ld_reduce.relaxed.sys.global."
#define ST "multimem.st.relaxed.sys.global."

#define MOVE_16(LOAD, STORE)                                                                       \
    uint4 x;                                                                                       \
    asm volatile(LD LOAD " {%0, %1, %2, %3}, [%4];"                                                \
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)                                      \
                 : "l"(m.src + u * 16)                                                             \
                 : "memory");                                                                      \
    asm volatile(ST STORE " [%0], {%1, %2, %3, %4};" ::"l"(m.dst + u * 16), "r"(x.x), "r"(x.y),    \
                 "r"(x.z), "r"(x.w)                                                                \
                 : "memory")
#define MOVE_ONE(T, REG, BYTES, LOAD, STORE)                                                       \
    T x;                                                                                           \
    asm volatile(LD LOAD " %0, [%1];" : "=" REG(x) : "l"(m.src + u * BYTES) : "memory");           \
    asm volatile(ST STORE " [%0], %1;" ::"l"(m.dst + u * BYTES), REG(x) : "memory")
#define MOVE_8(LOAD, STORE) MOVE_ONE(uint64_t, "l", 8, LOAD, STORE)
#define MOVE_4(LOAD, STORE) MOVE_ONE(uint32_t, "r", 4, LOAD, STORE)

#define MULTIMEM_KERNEL(NAME, ESIZE, UNIT, LOAD, STORE)                                            \
    KERNEL multimem_##NAME(const __grid_constant__ struct multimem_args m)                         \
    {                                                                                              \
        for (uint64_t u = grid_at(); u < m.units; u += grid_step()) {                              \
            MOVE_##UNIT(LOAD, STORE);                                                              \
        }                                                                                          \
    }
MULTIMEM(MULTIMEM_KERNEL)
#endif
