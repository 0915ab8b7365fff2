/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the links of a running fabric have carried, read from the telemetry of its trib-switch
 * processes: each has the egress queues of its own nodes.
 */
#ifndef TRIB_MACHINE_LINK_READER_H
#define TRIB_MACHINE_LINK_READER_H

#include "machine/rundir.h"

/*
 * Bytes with link overhead that have started on each direction so far: sent[2 * f->n_links], by
 * link * 2 + direction. All directions that one process sends into are read at one moment, up to
 * LINK_READER_PAGE of them. Of a host outside of the emulation it is what has arrived from there;
 * of nodes of other machines what these say, and 0 if they are not there. 0, or -errno with a
 * sentence in why (`size` bytes) if a direction cannot be read.
 */
#define LINK_READER_PAGE 256u
int link_reader_read(const struct rundir *rd, const struct fabric *f, uint64_t *sent, char *why,
                     size_t size);
/* The directions that one process sends into, by a connection to it (telemetry_client.h). 0,
 * -ETIMEDOUT: it does not answer, -EPROTO: not by what was asked for. */
int link_reader_ask(int fd, const struct fabric *f, uint64_t *sent);

#endif
