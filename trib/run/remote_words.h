/* SPDX-License-Identifier: BSD-3-Clause */
/* Words from another machine (scripts/trib-machines): --words=HEX has each of them, and a NUL
 * behind it, in hexadecimal. */
#ifndef TRIB_TRIB_RUN_REMOTE_WORDS_H
#define TRIB_TRIB_RUN_REMOTE_WORDS_H

#include "trib/run/words.h"

#include <stdbool.h>

#define REMOTE_WORDS "--words="

/* False: hex is not of that form. */
bool remote_words_read(const char *hex, struct words *w);

#endif
