/* SPDX-License-Identifier: BSD-3-Clause */
/* Estimates the memory of a simulation before it begins, and refuses what does not fit. */
#ifndef TRIB_SIM_WORLD_SIM_MEMORY_H
#define TRIB_SIM_WORLD_SIM_MEMORY_H

#include "host/coll/memory_need.h"

struct sim_need {
    uint64_t frames, fabric, ranks, data; /* bytes of each */
    struct coll_memory coll;
    uint64_t addresses; /* address space reserved in addition */
};

struct sim_need_cfg {
    struct coll_memory_cfg coll;
    uint64_t frame_bytes;  /* of the pool */
    uint64_t buffer_bytes; /* of each of a rank's two */
    uint64_t data_bytes;   /* of all of them, what is touched */
};

/* Parts that cannot be estimated count as 0. */
void sim_need(const struct sim_need_cfg *cfg, struct sim_need *n);
uint64_t sim_need_bytes(const struct sim_need *n);
/* 0, or -ENOMEM: this process cannot have so much; err says how much there is and is needed. */
int sim_need_check(const struct sim_need *n, char *err, size_t size);

#endif
