/* SPDX-License-Identifier: BSD-3-Clause */
/* What a conf says about protocols: shared objects to load, values of keys. */
#ifndef TRIB_PROTOCOLS_HOST_CONF_H
#define TRIB_PROTOCOLS_HOST_CONF_H

#include "fabric/fabric.h"
#include "protocols/host/registry.h"

/* Loads the shared objects that a fabric's conf names, and checks the keys of its protocols. Every
 * process that runs a protocol calls it once, before the first use. 0, or -errno and in err
 * (PROTO_CONF_TEXT bytes) file, line, what was found and what is expected. */
#define PROTO_CONF_TEXT 384
int proto_setup(const struct fabric *f, char *err);
/* The values of a protocol's keys on this fabric: the conf's, else the usual ones. */
void proto_conf(const struct fabric *f, const struct trib_protocol *p, int64_t key[TRIB_KEYS]);

#endif
