/* SPDX-License-Identifier: BSD-3-Clause */
/* GPU devices by name, and what tests add up of them. */
#ifndef TRIB_TESTS_FABRIC_DEVICE_NAMED_H
#define TRIB_TESTS_FABRIC_DEVICE_NAMED_H

#include "fabric/gpu_device.h"

#include <string.h>

/* NULL: none of this name. */
static inline const struct gpu_device *device_find(const char *name)
{
    const struct gpu_device *d;

    for (unsigned i = 0; (d = device_at(i)) != NULL; i++)
        if (!strcmp(d->name, name))
            return d;
    return NULL;
}

/* Bandwidth of a node into the scale-out network. */
static inline double device_node_Bps(const struct gpu_device *d)
{
    return d->gpus * d->nic_Bps;
}

#endif
