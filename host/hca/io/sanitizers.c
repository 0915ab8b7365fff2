/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What runtimes of sanitizers ask a process for, in programs that are built with one: they look these
 * functions up in the order of the loader, so a program's own come first.
 *
 * The address sanitizer ends a program whose runtime is not the first library, and a preloaded
 * library is before those that a program needs. Nothing here is in its way: of what it intercepts
 * this library has dlopen alone, which calls the next one. machine/preload.c says the same by
 * ASAN_OPTIONS, for programs that have options of their own built in.
 *
 * This library's threads take turns by locks and doorbells that the thread sanitizer does not see,
 * since the library is not built with it.
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
