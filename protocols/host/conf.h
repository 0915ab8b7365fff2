/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of protocols' keys on a fabric. */
#ifndef TRIB_PROTOCOLS_HOST_CONF_H
#define TRIB_PROTOCOLS_HOST_CONF_H

#include "fabric/fabric.h"
#include "protocols/host/registry.h"

/* Gets the values of the conf, if proto_setup() (load.h) has found that it names this protocol;
 * else the usual values. */
void proto_conf(const struct fabric *f, const struct trib_protocol *p, int64_t key[TRIB_KEYS]);

#endif
