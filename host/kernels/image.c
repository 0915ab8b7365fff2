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

static const void *const images[] = {kernel_image_reduce_int, kernel_image_reduce_float,
                                     kernel_image_reduce_small, kernel_image_reduce_avg,
                                     kernel_image_pattern};

unsigned kernel_images(const void *const **list)
{
    *list = images;
    return sizeof(images) / sizeof(images[0]);
}

const void *kernel_multimem_image(void)
{
    return kernel_image_multimem;
}
#else
unsigned kernel_images(const void *const **list)
{
    *list = NULL;
    return 0;
}

const void *kernel_multimem_image(void)
{
    return NULL;
}
#endif
