/* SPDX-License-Identifier: BSD-3-Clause */
/* The images that nvcc built of the .cu files, as bytes of this program; the driver picks the code
 * for its GPU. */
#include "host/kernels/kernels.h"

#ifdef KERNEL_IMAGES /* the folder */
#define IMAGE(name)                                                                                \
    __asm__(".section .rodata\n.balign 64\nkernel_image_" #name ":\n.incbin \"" KERNEL_IMAGES      \
            "/" #name ".fatbin\"\n.byte 0\n.previous\n");                                          \
    extern const char kernel_image_##name[] __attribute__((visibility("hidden")));
IMAGE(reduce_int)
IMAGE(reduce_float)
IMAGE(reduce_small)
IMAGE(reduce_avg)
IMAGE(pattern)
IMAGE(multimem)

static const void *const images[KERNEL_IMAGE_COUNT] = {
    [IMAGE_REDUCE_INT] = kernel_image_reduce_int,
    [IMAGE_REDUCE_FLOAT] = kernel_image_reduce_float,
    [IMAGE_REDUCE_SMALL] = kernel_image_reduce_small,
    [IMAGE_REDUCE_AVG] = kernel_image_reduce_avg,
    [IMAGE_PATTERN] = kernel_image_pattern,
    [IMAGE_MULTIMEM] = kernel_image_multimem};

const void *kernel_image(enum kernel_image i)
{
    return images[i];
}
#else
const void *kernel_image(enum kernel_image i)
{
    (void)i;
    return NULL;
}
#endif
