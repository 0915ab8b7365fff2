/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges of a communicator's ranks over their out-of-band calls. */
#ifndef TRIB_HOST_SESSION_OOB_H
#define TRIB_HOST_SESSION_OOB_H

#include <tributary/coll.h>

/* Every rank's `bytes`, in order of ranks, at every rank; a message is at most OOB_MESSAGE bytes. 0,
 * -ENOMEM, -EIO: a call has failed. */
#define OOB_MESSAGE 512u
int oob_all_gather(const struct trib_oob *oob, const void *mine, void *all, size_t bytes);

#endif
