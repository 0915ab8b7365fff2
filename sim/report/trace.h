/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of chosen links in a pcapng file, each at the fabric time at which its last bit reached
 * the end of the link. An interface is a link, named as in trib plan; outbound is from its first
 * end to its second. A payload that is carried as a length is cut off; the frame's length includes
 * it.
 */
#ifndef TRIB_SIM_REPORT_TRACE_H
#define TRIB_SIM_REPORT_TRACE_H

#include "fabric/fabric.h"

#include <rte_mbuf.h>

struct trace;

#define TRACE_ERR 256

/* Links of a list of names, each a link's or a node's (then all of its links); NULL: all. Sets
 * chosen[f->n_links]. 0, or -EINVAL with a sentence in err (TRACE_ERR bytes). */
int trace_choose(const struct fabric *f, const char *list, bool *chosen, char *err);
/* 0, or -errno with a sentence in err. */
int trace_create(struct trace **t, const struct fabric *f, const bool *chosen, const char *path,
                 const char *application, char *err);
/* A net_tap_fn; ctx is the trace. */
void trace_frame(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps);
/* Completes the file. 0, or -errno: it is incomplete. *frames: how many it has. t NULL: 0. */
int trace_close(struct trace *t, uint64_t *frames);

#endif
