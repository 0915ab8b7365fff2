/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels of a GPU: reductions, patterns, block copies. Each kernel has a twin: the same body,
 * run on the CPU one thread after the other. A kernel takes its argument structure by value;
 * pointers in it are GPU addresses.
 */
#ifndef TRIB_HOST_KERNELS_KERNELS_H
#define TRIB_HOST_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_INPUTS  128u /* as ARITH_MAX_INPUTS */
#define KERNEL_THREADS 256u /* of a block */

/* How a kernel divides its elements into vectors: kernel_split(). */
struct kernel_split {
    uint64_t head;    /* elements before the first whole vector */
    uint64_t vectors; /* of 16 bytes */
    uint64_t rest;    /* elements in no vector, head included */
};

/* out[i] = in[0][i] op ... op in[n - 1][i]; the result goes to copy too. */
struct reduce_args {
    uint8_t *out, *copy; /* copy: NULL, or a second output */
    struct kernel_split split;
    uint32_t n, divide; /* divide: divisor of an average */
    const uint8_t *in[KERNEL_INPUTS];
};

struct verify_result {
    uint64_t wrong, first; /* differing elements, and the first of them; first starts as ~0 */
};

/* Byte i of buf is period[(first + i) % period_bytes] ^ flip. */
struct pattern_args {
    uint8_t *buf;
    const uint8_t *period;
    struct verify_result *result; /* of verify */
    struct kernel_split split;
    uint64_t first, period_bytes;
    uint64_t step; /* threads that work, a multiple of the pattern's cycle: pattern_grid() */
    uint32_t esize, flip;
};

/* Copies outer * inner blocks of `bytes` bytes. Unpacking is packing with the strides of src and
 * dst exchanged. */
struct blocks_args {
    uint8_t *dst;
    const uint8_t *src;
    uint64_t outer, inner, bytes;
    uint64_t dst_outer, dst_inner, src_outer, src_inner; /* strides */
    uint32_t unit;                                       /* 16, 4 or 1: kernel_unit() */
};

/* dst = the reduction of src over all members, stored to all members; both are
 * multicast addresses. */
struct multimem_args {
    uint8_t *dst;
    const uint8_t *src;
    uint64_t units; /* length in units of struct kernel.unit */
};

#ifndef __CUDACC__
#include "aggregation/dtype.h"

/* Argument of the twin: addresses of each member's memory instead of multicast ones. */
struct multimem_twin {
    struct multimem_args args;
    unsigned n;
    uint8_t *dst[KERNEL_INPUTS];
    const uint8_t *src[KERNEL_INPUTS];
};

/* The images that nvcc builds, one per .cu file. */
enum kernel_image {
    IMAGE_REDUCE_INT,
    IMAGE_REDUCE_FLOAT,
    IMAGE_REDUCE_SMALL,
    IMAGE_REDUCE_AVG,
    IMAGE_PATTERN,
    IMAGE_MULTIMEM, /* for sm_90 and later only */
    KERNEL_IMAGE_COUNT
};
enum kernel_args { KERNEL_REDUCE, KERNEL_PATTERN, KERNEL_BLOCKS, KERNEL_MULTIMEM };
struct kernel {
    const char *name; /* of the function in the GPU image */
    enum kernel_image image;
    enum kernel_args takes;
    unsigned unit; /* KERNEL_MULTIMEM: bytes per instruction, a multiple of the element */
    void (*twin)(const void *args, uint64_t at, uint64_t step);
};

/* The kernel of a reduction. average: OP_AVG divides, else it is OP_SUM. NULL: not supported. */
const struct kernel *kernel_reduce(enum redop op, enum dtype t, bool average);
const struct kernel *kernel_fill(void);
const struct kernel *kernel_verify(void);
const struct kernel *kernel_blocks(void);
/* The reduction by NVSwitches. NULL: they do not support the operation or the type. */
const struct kernel *kernel_multimem(enum redop op, enum dtype t);
const struct kernel *kernel_by_name(const char *name);

/* Divides `count` elements in n buffers at these addresses. */
struct kernel_split kernel_split(const void *const *at, unsigned n, uint64_t count, unsigned esize);
struct kernel_split reduce_split(const struct reduce_args *r, uint64_t count, unsigned esize);
struct kernel_split pattern_split(const struct pattern_args *p, uint64_t count);
uint32_t kernel_unit(const struct blocks_args *b);

/* Number of blocks of KERNEL_THREADS threads to run on a chip with so many processors; at most as
 * many as run at once. pattern_grid() also sets p->step. */
unsigned reduce_grid(const struct kernel_split *s, unsigned processors);
unsigned blocks_grid(const struct blocks_args *b, unsigned processors);
unsigned multimem_grid(uint64_t units, unsigned processors);
unsigned pattern_grid(struct pattern_args *p, unsigned processors);

/* Runs a kernel's twin as a grid of so many blocks. */
void kernel_run_twin(const struct kernel *k, const void *args, unsigned grid);

/* What nvcc built, for the driver to load. NULL: built without CUDA. */
const void *kernel_image(enum kernel_image i);
#endif
#endif
