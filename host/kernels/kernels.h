/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What runs on a GPU: reductions, patterns, blocks. Each kernel has a twin, the same body run by
 * the CPU one thread after the other. The argument structures are what a kernel takes, by value;
 * pointers in them are the GPU's.
 */
#ifndef TRIB_HOST_KERNELS_KERNELS_H
#define TRIB_HOST_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_INPUTS  128u /* as ARITH_MAX_INPUTS */
#define KERNEL_THREADS 256u /* of a block */

/* How a kernel walks through elements: kernel_split(). */
struct kernel_split {
    uint64_t head;    /* elements before the first whole vector */
    uint64_t vectors; /* of 16 bytes */
    uint64_t rest;    /* elements that are in none */
};

/* out[i] = in[0][i] op ... op in[n - 1][i], and the same to copy. */
struct reduce_args {
    uint8_t *out, *copy; /* copy: NULL, or where the result goes too */
    struct kernel_split split;
    uint32_t n, divide; /* divide: by how much an average is divided */
    const uint8_t *in[KERNEL_INPUTS];
};

struct verify_result {
    uint64_t wrong, first; /* elements that differ, and the first of them; first begins as ~0 */
};

/* Byte i of buf is period[(first + i) % period_bytes] ^ flip. */
struct pattern_args {
    uint8_t *buf;
    const uint8_t *period;
    struct verify_result *result; /* of verify */
    struct kernel_split split;
    uint64_t first, period_bytes;
    uint64_t step; /* threads that take part, a whole number of cycles: pattern_grid() */
    uint32_t esize, flip;
};

/* outer * inner blocks of so many bytes from one place to another: pack with the strides of src and
 * dst one way, unpack with the same strides the other way round. */
struct blocks_args {
    uint8_t *dst;
    const uint8_t *src;
    uint64_t outer, inner, bytes;
    uint64_t dst_outer, dst_inner, src_outer, src_inner; /* strides */
    uint32_t unit;                                       /* 16, 4 or 1: kernel_unit() */
};

/* dst = the reduction of src over all members, and to all of them: both are multicast addresses. */
struct multimem_args {
    uint8_t *dst;
    const uint8_t *src;
    uint64_t units; /* struct kernel's */
};

#ifndef __CUDACC__
#include "aggregation/dtype.h"

/* What the twin takes in its place: where the members' memory is. */
struct multimem_twin {
    struct multimem_args args;
    unsigned n;
    uint8_t *dst[KERNEL_INPUTS];
    const uint8_t *src[KERNEL_INPUTS];
};

enum kernel_args { KERNEL_REDUCE, KERNEL_PATTERN, KERNEL_BLOCKS, KERNEL_MULTIMEM };
struct kernel {
    const char *name; /* of the function in the GPU's image */
    enum kernel_args takes;
    unsigned unit; /* of KERNEL_MULTIMEM: bytes that one instruction takes, whole elements */
    void (*twin)(const void *args, uint64_t at, uint64_t step);
};

/* The reduction; average: of OP_AVG, with the division (else OP_AVG is OP_SUM). NULL: there is
 * none. */
const struct kernel *kernel_reduce(enum redop op, enum dtype t, bool average);
const struct kernel *kernel_fill(void);
const struct kernel *kernel_verify(void);
const struct kernel *kernel_blocks(void);
/* By the NVSwitches; NULL: they have none, or not of that type. */
const struct kernel *kernel_multimem(enum redop op, enum dtype t);
const struct kernel *kernel_by_name(const char *name);

/* Of `count` elements in buffers at these n addresses. */
struct kernel_split kernel_split(const void *const *at, unsigned n, uint64_t count, unsigned esize);
struct kernel_split reduce_split(const struct reduce_args *r, uint64_t count, unsigned esize);
struct kernel_split pattern_split(const struct pattern_args *p, uint64_t count);
uint32_t kernel_unit(const struct blocks_args *b);

/* Blocks of KERNEL_THREADS for the work on a chip with so many processors; at most as many as run
 * at once. pattern: sets p->step too. */
unsigned reduce_grid(const struct kernel_split *s, unsigned processors);
unsigned blocks_grid(const struct blocks_args *b, unsigned processors);
unsigned multimem_grid(uint64_t units, unsigned processors);
unsigned pattern_grid(struct pattern_args *p, unsigned processors);

/* The whole of a kernel by its twin, as a grid of so many blocks. */
void kernel_run_twin(const struct kernel *k, const void *args, unsigned grid);

/* What nvcc made of them, for the driver to load. 0: this build has none. */
unsigned kernel_images(const void *const **list);
/* Those of multicast memory, for sm_90 and later alone. NULL: this build has none. */
const void *kernel_multimem_image(void);
#endif
#endif
