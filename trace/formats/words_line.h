/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of blank-separated words and numbers, as of connection matrices, workloads and logs. */
#ifndef TRIB_TRACE_FORMATS_WORDS_LINE_H
#define TRIB_TRACE_FORMATS_WORDS_LINE_H

#include "trace/trace_input.h"

#include <stdbool.h>

struct words_line {
    struct trace_input *in;
    char *rest; /* of the line; what is behind the word that came last */
    char *word; /* the next one, which words_next() has cut out; "": the line ends */
};

/* Goes on to the next line with a word, `comment` to the end of the line left out (0: none). 0, 1:
 * there is none, or -errno. */
int words_line_next(struct words_line *w, struct trace_input *in, char comment);
/* Goes on to the next word of the line. */
void words_next(struct words_line *w);
bool words_is(const struct words_line *w, const char *word);
/* The word as a whole number up to most, and on; a fraction is cut off where `fraction` says so. 0, or
 * -EINVAL with the reason in the input's err. */
int words_number(struct words_line *w, uint64_t most, bool fraction, const char *expected,
                 uint64_t *value);
/* Says that the word is not what is expected. -EINVAL. */
int words_refuse(struct words_line *w, const char *expected);

#endif
