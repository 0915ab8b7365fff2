/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/repair.h"

const char *repair_name(enum repair rule)
{
    static const char *const names[] = {
#define ROW(rule, name, text) name,
        REPAIR_TABLE
#undef ROW
    };

    return names[rule];
}

const char *repair_means(enum repair rule)
{
    static const char *const meanings[] = {
#define ROW(rule, name, text) text,
        REPAIR_TABLE
#undef ROW
    };

    return meanings[rule];
}
