/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network plug-in's tables of any version, called alike. Arguments of newer versions have what NCCL
 * passes where it has nothing to say; results of older ones are as of version 12.
 */
#ifndef TRIB_PLUGINS_CHECK_TABLES_H
#define TRIB_PLUGINS_CHECK_TABLES_H

#include <nccl/net_abi.h>

#include <stdbool.h>

#define TABLES_FIRST 8
#define TABLES_LAST  12
#define TABLES       10 /* net and CollNet of each version */
#define TABLE_GROUP  16 /* receives of a group at most */

struct plugin_table {
    bool coll;
    int version;
    const void *at;
};

/* The i-th: net of all versions, then CollNet of all; its name for users ("net-v8"), and the symbol's.
 * NULL behind the last. */
const char *table_name(unsigned i);
const char *table_symbol(unsigned i);
/* false: the library has none. */
bool table_find(void *library, unsigned i, struct plugin_table *t);
/* A function that every network plug-in of the version has and that is NULL here; NULL: none. */
const char *table_lacks(const struct plugin_table *t);

/* ctx: of a communicator of NCCL's, from version 11 on; it stays NULL before. */
int table_init(const struct plugin_table *t, void **ctx, uint64_t comm_id, nccl_log_fn log);
int table_finalize(const struct plugin_table *t, void *ctx);
int table_devices(const struct plugin_table *t, int *n);
/* *beyond: the plug-in wrote behind the struct of its version. fill: what was in the struct before. */
int table_properties(const struct plugin_table *t, int dev, uint8_t fill,
                     struct nccl_props_v12 *props, bool *beyond);
int table_listen(const struct plugin_table *t, void *ctx, int dev, void *handle, void **listen);
int table_close_listen(const struct plugin_table *t, void *listen);
int table_reg_mr(const struct plugin_table *t, void *comm, void *data, size_t size, int type,
                 void **mh);
int table_dereg_mr(const struct plugin_table *t, void *comm, void *mh);
/* -1: the table has no such function. */
int table_reg_dmabuf(const struct plugin_table *t, void *comm, void *data, size_t size, int fd,
                     void **mh);
int table_test(const struct plugin_table *t, void *req, int *done, int *sizes);

int net_connect(const struct plugin_table *t, void *ctx, int dev, void *handle, void **comm,
                struct nccl_device_handle **device);
int net_accept(const struct plugin_table *t, void *listen, void **comm,
               struct nccl_device_handle **device);
int net_isend(const struct plugin_table *t, void *comm, void *data, size_t size, int tag, void *mh,
              void **req);
/* n: TABLE_GROUP at most. */
int net_irecv(const struct plugin_table *t, void *comm, int n, void **data, size_t *sizes,
              int *tags, void **mh, void **req);
int net_iflush(const struct plugin_table *t, void *comm, int n, void **data, int *sizes, void **mh,
               void **req);
int net_close_send(const struct plugin_table *t, void *comm);
int net_close_recv(const struct plugin_table *t, void *comm);

int coll_connect(const struct plugin_table *t, void *handles[], int nranks, int rank, void *listen,
                 void **comm);
int coll_reduce_support(const struct plugin_table *t, int type, int op, int *supported);
int coll_iallreduce(const struct plugin_table *t, void *comm, void *send, void *recv, size_t count,
                    int type, int op, void *send_mh, void *recv_mh, void **req);
/* window: of bytes from offset on, of all ranks' blocks. */
int coll_iallgather(const struct plugin_table *t, void *comm, void *send, void *window,
                    size_t block, size_t offset, size_t bytes, void *send_mh, void *recv_mh,
                    void **req);
int coll_ireducescatter(const struct plugin_table *t, void *comm, void *window, void *recv,
                        size_t block, size_t offset, size_t bytes, int type, int op, void *send_mh,
                        void *recv_mh, void **req);
int coll_iflush(const struct plugin_table *t, void *comm, void *data, int size, void *mh,
                void **req);
int coll_close(const struct plugin_table *t, void *comm);

#endif
