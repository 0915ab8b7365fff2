/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the events in multimem's ring. */
#include "switch/multimem/mm_priv.h"

static const char *const names[] = {
#define X(name, text) [MM_EV_##name] = text,
    MM_EVENTS(X)
#undef X
#define X(name) [MM_EV_EDGE + MM_##name] = "multimem group %u: member %u is " #name,
        MM_EDGE_STATES(X)
#undef X
};

const struct event_kinds mm_event_kinds = {"switch", names, sizeof(names) / sizeof(names[0])};
