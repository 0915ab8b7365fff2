/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assertions: preconditions and invariants, each with a sentence that says what would be wrong.
 * Input from outside (frames, files, options, peers) is never asserted: it is refused by name.
 *
 *   T_ASSERT       on in every build
 *   T_ASSERT_HOT   in measured loops: on with -DTRIB_CHECKED (the debug, sanitizer, fuzz and checked
 *                  builds, `make chaos`), costs nothing else
 *
 * A failed assertion prints itself and the last events of every engine of the process, then aborts.
 */
#ifndef TRIB_BASE_ASSERT_H
#define TRIB_BASE_ASSERT_H

_Noreturn void assert_failed(const char *condition, const char *what, const char *file, int line,
                             const char *function);

#define T_ASSERT(condition, what)                                                                  \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            assert_failed(#condition, what, __FILE__, __LINE__, __func__);                         \
    } while (0)

#ifdef TRIB_CHECKED
#define T_ASSERT_HOT(condition, what) T_ASSERT(condition, what)
#else
#define T_ASSERT_HOT(condition, what)                                                              \
    do {                                                                                           \
        if (0)                                                                                     \
            (void)(condition);                                                                     \
    } while (0)
#endif

#endif
