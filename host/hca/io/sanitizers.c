/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Default options for programs that are built with a sanitizer. The sanitizer's runtime looks these
 * functions up in the loader's order, so a program's own definitions win.
 *
 * AddressSanitizer ends a program whose runtime is not the first library, and a preloaded library
 * comes before it. That is harmless here: the only intercepted function that this library defines
 * is dlopen, and it calls the next one. machine/preload.c sets the same option in ASAN_OPTIONS, for
 * programs that have options of their own built in.
 *
 * ThreadSanitizer sees neither the locks nor the doorbells of this library's threads, because the
 * library is not built with it.
 */
#include "host/hca/hca_priv.h"

EXPORT const char *__asan_default_options(void);
EXPORT const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}

EXPORT const char *__tsan_default_suppressions(void);
EXPORT const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libtribverbs.so\nrace:libtribverbs.so\n";
}
