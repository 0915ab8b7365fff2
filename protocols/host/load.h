/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads shared objects with protocols, also those that a conf names. For the start of a process,
 * when it may read files. */
#ifndef TRIB_PROTOCOLS_HOST_LOAD_H
#define TRIB_PROTOCOLS_HOST_LOAD_H

#include "fabric/fabric.h"
#include "protocols/host/registry.h"

/* Loads a shared object, which stays loaded, and adds its protocol (proto_add()). -ENOENT: it
 * cannot be loaded, or has no `trib_protocol`. */
int proto_load(const char *path, char *err);
/* The file from which the protocol in a seat was loaded; NULL: it is built in. */
const char *proto_object(unsigned seat);
/* Loads the shared objects that a fabric's conf names, checks the keys of its protocols, and notes
 * their seats. Every process that runs a protocol calls it once, before the first use. 0, or -errno
 * and in err (PROTO_CONF_TEXT bytes) file, line, what was found and what is expected. */
#define PROTO_CONF_TEXT 384
int proto_setup(struct fabric *f, char *err);

#endif
