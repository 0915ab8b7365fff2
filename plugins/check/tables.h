/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls a network plug-in's tables of any version through one interface. Arguments that only newer
 * versions have get NCCL's neutral values; results are those of version 12.
 */
#ifndef TRIB_PLUGINS_CHECK_TABLES_H
#define TRIB_PLUGINS_CHECK_TABLES_H

#include <nccl/net_abi.h>

#include <stdbool.h>

#define TABLES_FIRST 8
#define TABLES_LAST  12
#define TABLES       10 /* net and CollNet of each version */
#define TABLE_GROUP  16 /* most receives of a group */

struct plugin_table {
    bool coll;
    int version;
    const void *at;
};

/* Names of the i-th table, for users ("net-v8") and of its symbol: first net of all versions, then
 * CollNet. NULL: there are no more. */
const char *table_name(unsigned i);
const char *table_symbol(unsigned i);
/* false: the library has none. */
bool table_find(void *library, unsigned i, struct plugin_table *t);
/* The name of a mandatory function that is NULL in this table; NULL: none is missing. */
const char *table_lacks(const struct plugin_table *t);

/* ctx: context of an NCCL communicator from version 11 on; NULL before. */
int table_init(const struct plugin_table *t, void **ctx, uint64_t comm_id, nccl_log_fn log);
int table_finalize(const struct plugin_table *t, void *ctx);
int table_devices(const struct plugin_table *t, int *n);
/* *beyond: the plug-in wrote beyond the struct of its version. fill: contents of the struct before.
 */
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
/* n: at most TABLE_GROUP. */
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
/* window: bytes from `offset` on of the vector of all ranks' blocks. */
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
