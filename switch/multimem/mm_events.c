/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ring of a multimem's last events says of each kind. */
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
