/* SPDX-License-Identifier: BSD-3-Clause */
/* What a reader repairs of a trace, by named rules: each use is counted, and nothing else is changed. */
#ifndef TRIB_TRACE_REPAIR_H
#define TRIB_TRACE_REPAIR_H

/* rule, name in JSON, description */
#define REPAIR_TABLE                                                                               \
    ROW(STREAM_ORDER, "stream_order", "operations wait for the one before them on their stream")   \
    ROW(CONTROL, "control_kept",                                                                   \
        "dependencies of control stand for data dependencies, of which the rank has none")         \
    ROW(CONTROL_LEFT, "control_left_out", "dependencies of control, beside those of data")         \
    ROW(ABSENT, "absent_left_out", "dependencies on what does not exist")                          \
    ROW(LOCAL, "made_local", "collectives of the host, or without a type, join nobody")            \
    ROW(KERNEL_NAME, "kind_by_kernel", "collectives have the kind of their kernel's name, no size")

enum repair {
#define ROW(rule, name, text) REPAIR_##rule,
    REPAIR_TABLE
#undef ROW
        REPAIRS
};

const char *repair_name(enum repair rule);
const char *repair_means(enum repair rule);

#endif
