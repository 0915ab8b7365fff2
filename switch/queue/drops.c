/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/queue/drops.h"

static const struct {
    const char *name, *text;
} drops[DROP_REASONS] = {
#define X(n, s, t) {s, t},
    DROP_TABLE(X)
#undef X
};

const char *drop_name(enum drop d)
{
    return d < DROP_REASONS ? drops[d].name : "?";
}

const char *drop_text(enum drop d)
{
    return d < DROP_REASONS ? drops[d].text : "?";
}
