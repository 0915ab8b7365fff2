/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the bytes that the links of a running fabric have carried, from the telemetry of its trib-switch
 * processes: each knows the egress queues of its own nodes.
 */
#ifndef TRIB_MACHINE_LINK_READER_H
#define TRIB_MACHINE_LINK_READER_H

#include "machine/rundir.h"

/*
 * Bytes with link overhead that each direction has started to send so far: sent[2 * f->n_links], by
 * link * 2 + direction. Up to LINK_READER_PAGE directions of one process are read at one moment. For a
 * host outside of the emulation: bytes that arrived from there. For nodes of other machines: what their
 * trunks report, 0 while they are not there. 0, or -errno with a sentence in why (`size` bytes) if a
 * direction cannot be read.
 */
#define LINK_READER_PAGE 256u
int link_reader_read(const struct rundir *rd, const struct fabric *f, uint64_t *sent, char *why,
                     size_t size);
/* Reads the directions into which one process sends, by a connection to it (telemetry_client.h). 0;
 * -ETIMEDOUT: it does not answer; -EPROTO: its answer is malformed. */
int link_reader_ask(int fd, const struct fabric *f, uint64_t *sent);

#endif
