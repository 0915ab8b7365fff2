/* SPDX-License-Identifier: BSD-3-Clause */
/* What cases of CollNet need: a communicator of all ranks, memory with marks, elements of all types. */
#ifndef TRIB_PLUGINS_CHECK_COLL_GROUP_H
#define TRIB_PLUGINS_CHECK_COLL_GROUP_H

#include "plugins/check/plugin_rank.h"

#include <stddef.h>

#define GROUP_BYTES  ((size_t)1 << 20)
#define GROUP_EDGE   ((size_t)4096) /* unregistered bytes on both sides of a buffer */
#define GROUP_FLIGHT 8              /* requests in flight, as many as steps of NCCL's proxy */

struct buffer {
    uint8_t *at; /* GROUP_BYTES */
    uint8_t *all;
    void *mh;
};
struct coll_group {
    void *comm;
    struct buffer in, out;
};

void group_open(struct plugin_rank *r, struct coll_group *g);
void group_close(struct plugin_rank *r, struct coll_group *g);
/* Fills the whole buffer with marks. */
void buffer_clear(struct buffer *b);
/* Checks that all but n bytes from `at` on are marks. what: the operation, for the text. */
void buffer_untouched(struct plugin_rank *r, const struct buffer *b, size_t at, size_t n,
                      const char *what);

/* ---- elements ---- */

size_t element_size(int type);
const char *element_name(int type);
const char *reduction_name(int op);
/* v: a whole number that every type can hold. */
bool element_is(int type, const void *from, size_t i, int v);
/* A rank's contribution. */
int element_value(unsigned rank, size_t i);
/* Fills in contributions, from element `from` of the vector on. */
void elements_fill(const struct plugin_rank *r, int type, void *to, size_t from, size_t n);
void elements_expect(struct plugin_rank *r, int type, int op, const void *at, size_t from, size_t n,
                     const char *what);
/* Whether the plug-in supports this type and reduction. */
bool group_supports(struct plugin_rank *r, int type, int op);

/* ---- operations ---- */

/* Calls until there is a request, as NULL means that the call would block. */
void *group_allreduce(struct plugin_rank *r, struct coll_group *g, const void *send, void *recv,
                      size_t n, int type, int op);
void *group_allgather(struct plugin_rank *r, struct coll_group *g, void *send, void *window,
                      size_t block, size_t offset, size_t bytes);
void *group_reducescatter(struct plugin_rank *r, struct coll_group *g, void *window, void *recv,
                          size_t block, size_t offset, size_t bytes, int type, int op);
void group_finish(struct plugin_rank *r, void *req);

#endif
