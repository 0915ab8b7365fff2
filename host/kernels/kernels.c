/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "host/kernels/body.h"
#include "host/kernels/multimem.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

#define BLOCKS_AT_ONCE 8u /* blocks that a processor runs at once: 2048 threads */

REDUCTIONS_INT(REDUCTION)
REDUCTIONS_FLOAT(REDUCTION)
REDUCTIONS_SMALL(REDUCTION)
AVERAGES(AVERAGE)

#define TWIN(NAME, ...)                                                                            \
    static void twin_##NAME(const void *args, uint64_t at, uint64_t step)                          \
    {                                                                                              \
        body_##NAME(args, at, step);                                                               \
    }
REDUCTIONS_INT(TWIN)
REDUCTIONS_FLOAT(TWIN)
REDUCTIONS_SMALL(TWIN)
AVERAGES(TWIN)
TWIN(fill)
TWIN(verify)
TWIN(blocks)

#define TWIN_MULTIMEM(NAME, ESIZE, UNIT, ...)                                                      \
    static void twin_multimem_##NAME(const void *args, uint64_t at, uint64_t step)                 \
    {                                                                                              \
        const struct multimem_twin *m = args;                                                      \
        struct reduce_args r;                                                                      \
        uint8_t one[UNIT];                                                                         \
                                                                                                   \
        r.out = one;                                                                               \
        r.copy = NULL;                                                                             \
        r.split = (struct kernel_split){.rest = UNIT / ESIZE};                                     \
        r.n = m->n;                                                                                \
        r.divide = 0;                                                                              \
        for (uint64_t u = at; u < m->args.units; u += step) {                                      \
            for (unsigned k = 0; k < m->n; k++)                                                    \
                r.in[k] = m->src[k] + u * UNIT;                                                    \
            body_##NAME(&r, 0, 1);                                                                 \
            for (unsigned k = 0; k < m->n; k++)                                                    \
                memcpy(m->dst[k] + u * UNIT, one, UNIT);                                           \
        }                                                                                          \
    }
MULTIMEM(TWIN_MULTIMEM)

#define NAMED(IMAGE, NAME)     {"reduce_" #NAME, IMAGE, KERNEL_REDUCE, 0, twin_##NAME},
#define NAMED_INT(NAME, ...)   NAMED(IMAGE_REDUCE_INT, NAME)
#define NAMED_FLOAT(NAME, ...) NAMED(IMAGE_REDUCE_FLOAT, NAME)
#define NAMED_SMALL(NAME, ...) NAMED(IMAGE_REDUCE_SMALL, NAME)
#define NAMED_AVG(NAME, ...)   NAMED(IMAGE_REDUCE_AVG, NAME)
#define NUMBER(NAME, ...)      K_##NAME,
#define NAMED_MULTIMEM(NAME, ESIZE, UNIT, ...)                                                     \
    {"multimem_" #NAME, IMAGE_MULTIMEM, KERNEL_MULTIMEM, UNIT, twin_multimem_##NAME},
#define NUMBER_MULTIMEM(NAME, ...) K_MM_##NAME,
enum {
    REDUCTIONS_INT(NUMBER) REDUCTIONS_FLOAT(NUMBER) REDUCTIONS_SMALL(NUMBER) AVERAGES(NUMBER)
        MULTIMEM(NUMBER_MULTIMEM) K_FILL,
    K_VERIFY,
    K_BLOCKS
};
static const struct kernel kernels[] = {
    REDUCTIONS_INT(NAMED_INT) REDUCTIONS_FLOAT(NAMED_FLOAT) REDUCTIONS_SMALL(NAMED_SMALL)
        AVERAGES(NAMED_AVG)
            MULTIMEM(NAMED_MULTIMEM){"fill", IMAGE_PATTERN, KERNEL_PATTERN, 0, twin_fill},
    {"verify", IMAGE_PATTERN, KERNEL_PATTERN, 0, twin_verify},
    {"blocks", IMAGE_PATTERN, KERNEL_BLOCKS, 0, twin_blocks},
};

/* Indices plus 1; 0: no kernel. */
#define IS(name) (K_##name + 1)
#define BY_SIZE(op)                                                                                \
    [DT_INT8] = IS(op##_8), [DT_UINT8] = IS(op##_8), [DT_INT16] = IS(op##_16),                     \
    [DT_UINT16] = IS(op##_16), [DT_INT32] = IS(op##_32), [DT_UINT32] = IS(op##_32),                \
    [DT_INT64] = IS(op##_64), [DT_UINT64] = IS(op##_64)
#define BY_SIGN(op)                                                                                \
    [DT_INT8] = IS(op##_i8), [DT_UINT8] = IS(op##_u8), [DT_INT16] = IS(op##_i16),                  \
    [DT_UINT16] = IS(op##_u16), [DT_INT32] = IS(op##_i32), [DT_UINT32] = IS(op##_u32),             \
    [DT_INT64] = IS(op##_i64), [DT_UINT64] = IS(op##_u64)
#define FLOATS(op)                                                                                 \
    [DT_FP16] = IS(op##_f16), [DT_FP32] = IS(op##_f32), [DT_FP64] = IS(op##_f64),                  \
    [DT_BF16] = IS(op##_bf16), [DT_FP8_E4M3] = IS(op##_e4m3), [DT_FP8_E5M2] = IS(op##_e5m2)
static const uint8_t reductions[OP_COUNT][DT_COUNT] = {
    [OP_SUM] = {BY_SIZE(sum), FLOATS(sum)},
    [OP_AVG] = {BY_SIZE(sum), FLOATS(sum)},
    [OP_PROD] = {BY_SIZE(prod), FLOATS(prod)},
    [OP_MIN] = {BY_SIGN(min), FLOATS(min)},
    [OP_MAX] = {BY_SIGN(max), FLOATS(max)},
    [OP_BAND] = {BY_SIZE(band)},
    [OP_BOR] = {BY_SIZE(bor)},
    [OP_BXOR] = {BY_SIZE(bxor)},
    [OP_MINLOC] = {[DT_FP32_LOC] = IS(minloc_f32), [DT_INT32_LOC] = IS(minloc_i32)},
    [OP_MAXLOC] = {[DT_FP32_LOC] = IS(maxloc_f32), [DT_INT32_LOC] = IS(maxloc_i32)},
    [OP_LAND] = {BY_SIZE(land)},
    [OP_LOR] = {BY_SIZE(lor)},
    [OP_LXOR] = {BY_SIZE(lxor)},
};
static const uint8_t averages[DT_COUNT] = {BY_SIGN(avg), FLOATS(avg)};

const struct kernel *kernel_reduce(enum redop op, enum dtype t, bool average)
{
    unsigned k = 0;

    if ((unsigned)op < OP_COUNT && (unsigned)t < DT_COUNT)
        k = op == OP_AVG && average ? averages[t] : reductions[op][t];
    return k ? &kernels[k - 1] : NULL;
}

#define MM(name) (K_MM_##name + 1)
#define MM_ORDERED(op)                                                                             \
    [DT_INT32] = MM(op##_i32), [DT_UINT32] = MM(op##_u32), [DT_INT64] = MM(op##_i64),              \
    [DT_UINT64] = MM(op##_u64), [DT_FP16] = MM(op##_f16), [DT_BF16] = MM(op##_bf16)
static const uint8_t multimem[OP_COUNT][DT_COUNT] = {
    [OP_SUM] = {[DT_INT32] = MM(sum_32),
                [DT_UINT32] = MM(sum_32),
                [DT_INT64] = MM(sum_64),
                [DT_UINT64] = MM(sum_64),
                [DT_FP16] = MM(sum_f16),
                [DT_FP32] = MM(sum_f32),
                [DT_FP64] = MM(sum_f64),
                [DT_BF16] = MM(sum_bf16)},
    [OP_MIN] = {MM_ORDERED(min)},
    [OP_MAX] = {MM_ORDERED(max)},
};

const struct kernel *kernel_multimem(enum redop op, enum dtype t)
{
    unsigned k = (unsigned)op < OP_COUNT && (unsigned)t < DT_COUNT ? multimem[op][t] : 0;

    return k ? &kernels[k - 1] : NULL;
}

const struct kernel *kernel_fill(void)
{
    return &kernels[K_FILL];
}

const struct kernel *kernel_verify(void)
{
    return &kernels[K_VERIFY];
}

const struct kernel *kernel_blocks(void)
{
    return &kernels[K_BLOCKS];
}

const struct kernel *kernel_by_name(const char *name)
{
    for (size_t i = 0; i < LEN(kernels); i++)
        if (!strcmp(kernels[i].name, name))
            return &kernels[i];
    return NULL;
}

/* ---- division of the work ---- */

struct kernel_split kernel_split(const void *const *at, unsigned n, uint64_t count, unsigned esize)
{
    uint64_t off = (uintptr_t)at[0] % 16, head = (16 - off) % 16;
    struct kernel_split s = {.rest = count};

    for (unsigned i = 1; i < n; i++)
        if ((uintptr_t)at[i] % 16 != off)
            return s;
    if (head % esize || head / esize > count)
        return s;
    s.head = head / esize;
    s.vectors = (count - s.head) / (16 / esize);
    s.rest = count - s.vectors * (16 / esize);
    return s;
}

struct kernel_split reduce_split(const struct reduce_args *r, uint64_t count, unsigned esize)
{
    const void *at[KERNEL_INPUTS + 2];
    unsigned n = 0;

    T_ASSERT(r->n && r->n <= KERNEL_INPUTS,
             "a reduction has no inputs, or more than a kernel takes");
    at[n++] = r->out;
    if (r->copy)
        at[n++] = r->copy;
    for (unsigned k = 0; k < r->n; k++)
        at[n++] = r->in[k];
    return kernel_split(at, n, count, esize);
}

struct kernel_split pattern_split(const struct pattern_args *p, uint64_t count)
{
    const void *at = p->buf;

    return kernel_split(&at, 1, count, p->esize);
}

uint32_t kernel_unit(const struct blocks_args *b)
{
    uint64_t all = (uintptr_t)b->dst | (uintptr_t)b->src | b->bytes | b->dst_outer | b->dst_inner |
                   b->src_outer | b->src_inner;

    return all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : 1;
}

static unsigned grid_of(uint64_t threads, unsigned processors)
{
    uint64_t blocks = (threads + KERNEL_THREADS - 1) / KERNEL_THREADS;
    uint64_t most = (uint64_t)processors * BLOCKS_AT_ONCE;

    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

static uint64_t work_of(const struct kernel_split *s)
{
    return s->vectors > s->rest ? s->vectors : s->rest;
}

unsigned reduce_grid(const struct kernel_split *s, unsigned processors)
{
    return grid_of(work_of(s), processors);
}

unsigned blocks_grid(const struct blocks_args *b, unsigned processors)
{
    return grid_of(b->bytes / b->unit * b->inner * b->outer, processors);
}

unsigned multimem_grid(uint64_t units, unsigned processors)
{
    return grid_of(units, processors);
}

/* Number of vectors after which the pattern starts again at the start of a vector. */
static uint64_t cycle_of(const struct pattern_args *p)
{
    uint64_t a = p->period_bytes, b = 16;

    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return p->period_bytes / a;
}

/* Sets p->step to the whole cycles that fit into the threads that run at once, at least one cycle.
 */
unsigned pattern_grid(struct pattern_args *p, unsigned processors)
{
    uint64_t cycle = cycle_of(p);
    uint64_t threads = (uint64_t)grid_of(work_of(&p->split), processors) * KERNEL_THREADS;

    p->step = threads < cycle ? cycle : threads / cycle * cycle;
    return (unsigned)((p->step + KERNEL_THREADS - 1) / KERNEL_THREADS);
}

void kernel_run_twin(const struct kernel *k, const void *args, unsigned grid)
{
    const struct pattern_args *p = args;
    uint64_t step = k->takes == KERNEL_PATTERN ? p->step : (uint64_t)grid * KERNEL_THREADS;

    T_ASSERT(step <= (uint64_t)grid * KERNEL_THREADS,
             "a pattern needs more threads than its grid has");
    for (uint64_t at = 0; at < step; at++)
        k->twin(args, at, step);
}
