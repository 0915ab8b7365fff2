/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers for cases of messages: connections of ranks 0 and 1, memory between marks, requests. */
#ifndef TRIB_PLUGINS_CHECK_CONNECTION_H
#define TRIB_PLUGINS_CHECK_CONNECTION_H

#include "plugins/check/plugin_rank.h"

#include <stddef.h>

#define MEMORY_BYTES ((size_t)2 << 20)
#define MEMORY_EDGE  ((size_t)8192) /* unregistered bytes on both sides */

struct connection {
    void *comm;
    bool sends;
};

struct plugin_memory {
    uint8_t *at; /* registered memory, MEMORY_BYTES */
    uint8_t *all;
    void *mh;
};

/* ---- connections ---- */

/* Rank `from` sends. listen: the receiver's listening communicator, which stays open. */
void connection_listen(struct plugin_rank *r, unsigned from, void **listen);
void connection_meet(struct plugin_rank *r, unsigned from, void *listen, struct connection *c);
void connection_open(struct plugin_rank *r, unsigned from, struct connection *c);
void connection_close(struct plugin_rank *r, struct connection *c);

/* ---- memory ---- */

void memory_open(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m);
void memory_close(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m);
void memory_register(struct plugin_rank *r, const struct connection *c, void *data, size_t n,
                     void **mh);
void memory_fill(struct plugin_memory *m, size_t at, size_t n, unsigned seed);
/* Checks the pattern of a message, and marks the bytes again. what: the message, for the text. */
void memory_expect(struct plugin_rank *r, struct plugin_memory *m, size_t at, size_t n,
                   unsigned seed, const char *what);
/* Checks that everything is marks, so nothing was written but what was expected. */
void memory_untouched(struct plugin_rank *r, const struct plugin_memory *m);

/* ---- requests ---- */

/* Tries once. NULL: it would block. */
void *send_try(struct plugin_rank *r, const struct connection *c, const struct plugin_memory *m,
               size_t at, size_t n, int tag);
void *send_start(struct plugin_rank *r, const struct connection *c, const struct plugin_memory *m,
                 size_t at, size_t n, int tag);
struct receive {
    size_t at, room;
    int tag;
};
void *receive_try(struct plugin_rank *r, const struct connection *c, const struct plugin_memory *m,
                  int n, const struct receive *part);
void *receive_start(struct plugin_rank *r, const struct connection *c,
                    const struct plugin_memory *m, int n, const struct receive *part);
/* Tests once. */
bool request_test(struct plugin_rank *r, void *req, int *sizes);
void request_finish(struct plugin_rank *r, void *req, int *sizes);
void sent_finish(struct plugin_rank *r, void *req, size_t n);

#endif
