/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared objects with protocols, and those that a conf names: for the start of a process, which may
 * read files. */
#ifndef TRIB_PROTOCOLS_HOST_LOAD_H
#define TRIB_PROTOCOLS_HOST_LOAD_H

#include "fabric/fabric.h"
#include "protocols/host/registry.h"

/* proto_add() of the protocol in a shared object, which stays loaded. -ENOENT: it has no
 * `trib_protocol`, or cannot be loaded. */
int proto_load(const char *path, char *err);
/* The file of the protocol in a seat, as it was loaded; NULL: it comes with the program. */
const char *proto_object(unsigned seat);
/* Loads the shared objects that a fabric's conf names, checks the keys of its protocols, and notes
 * their seats. Every process that runs a protocol calls it once, before the first use. 0, or -errno
 * and in err (PROTO_CONF_TEXT bytes) file, line, what was found and what is expected. */
#define PROTO_CONF_TEXT 384
int proto_setup(struct fabric *f, char *err);

#endif
