/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges among the ranks of a communicator over their out-of-band calls. */
#ifndef TRIB_HOST_SESSION_OOB_H
#define TRIB_HOST_SESSION_OOB_H

#include <tributary/coll.h>

/* Gathers `bytes` bytes of every rank, in order of ranks, into all[size * bytes] at every rank.
 * Broadcasts are at most OOB_MESSAGE bytes long. 0, or -EIO if a call failed. */
#define OOB_MESSAGE 512u
int oob_all_gather(const struct trib_oob *oob, const void *mine, void *all, size_t bytes);

#endif
