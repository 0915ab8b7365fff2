/* SPDX-License-Identifier: BSD-3-Clause */
/* What memory a simulation will take, before it begins: refused where there is not that much. */
#ifndef TRIB_SIM_WORLD_SIM_MEMORY_H
#define TRIB_SIM_WORLD_SIM_MEMORY_H

#include "host/coll/model/need.h"

struct sim_need {
    uint64_t frames, fabric, ranks, data; /* bytes of each */
    struct coll_need coll;
    uint64_t addresses; /* reserved beside all of these */
};

struct sim_need_cfg {
    struct coll_need_cfg coll;
    uint64_t frame_bytes;  /* of the pool */
    uint64_t buffer_bytes; /* of each of a rank's two */
    uint64_t data_bytes;   /* of all of them, what is touched */
};

/* What cannot be counted is left out. */
void sim_need(const struct sim_need_cfg *cfg, struct sim_need *n);
uint64_t sim_need_bytes(const struct sim_need *n);
/* Against what this process can have. 0, or -ENOMEM: err says what there is and what is needed. */
int sim_need_check(const struct sim_need *n, char *err, size_t size);

#endif
