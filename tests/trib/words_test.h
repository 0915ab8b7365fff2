/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of trib/ share: cmocka's headers in order, and lists compared as one text. */
#ifndef TRIB_TESTS_TRIB_WORDS_TEST_H
#define TRIB_TESTS_TRIB_WORDS_TEST_H

#include "trib/run/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static inline void assert_words(const struct words *w, const char *joined)
{
    assert_string_equal(words_join(w->n, w->at, "|"), joined);
}

#endif
