/* SPDX-License-Identifier: BSD-3-Clause */
/* A question to the one loop of a test: what telemetry answers, as JSON that is the caller's. */
#ifndef TRIB_TESTS_IO_TELEMETRY_ASK_H
#define TRIB_TESTS_IO_TELEMETRY_ASK_H

#include "io/telemetry/telemetry.h"
#include "tests/io/one_loop.h"
#include "tests/io/told.h"

static json_t *ask(const char *cmd, const char *params)
{
    struct rte_tel_data d = {NULL};

    telemetry_answer(o.l, cmd, params, &d);
    return d.v;
}

#endif
