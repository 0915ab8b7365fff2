/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHARP's collective interface, for the switches of a Tributary fabric: names, values and layouts are
 * those that programs written for libsharp_coll.so.5 use. docs/applications.md says what works.
 *
 * The program runs as a host of the fabric (`trib exec CONF HOST -- PROGRAM`).
 *
 * Functions return SHARP_COLL_SUCCESS or a negative value of enum sharp_error_no; the reason in words
 * goes to standard error (SHARP_COLL_LOG_LEVEL).
 * Units: lengths, sizes and offsets are bytes unless they say elements.
 * Ownership: descriptors and strings are copied by the call that takes them; buffers belong to the
 * caller, and to the operation until it has ended.
 * Threads: any, enable_thread_support or not; calls wait for each other. Nothing runs in between:
 * operations proceed in sharp_coll_req_test(), _req_wait(), _progress() and in blocking operations, and
 * each of these drives all operations of the process.
 * Every process of a communicator calls the same operations in the same order.
 * Fields named reserved are not read.
 */
#ifndef SHARP_API_SHARP_COLL_H
#define SHARP_API_SHARP_COLL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- values ---- */

enum sharp_datatype {
    SHARP_DTYPE_UNSIGNED, /* 32 bits */
    SHARP_DTYPE_INT,
    SHARP_DTYPE_UNSIGNED_LONG, /* 64 bits */
    SHARP_DTYPE_LONG,
    SHARP_DTYPE_FLOAT,
    SHARP_DTYPE_DOUBLE,
    SHARP_DTYPE_UNSIGNED_SHORT, /* 16 bits */
    SHARP_DTYPE_SHORT,
    SHARP_DTYPE_FLOAT_SHORT, /* IEEE 754 binary16 */
    SHARP_DTYPE_BFLOAT16,
    SHARP_DTYPE_UINT8,
    SHARP_DTYPE_INT8,
    SHARP_DTYPE_NULL
};

enum sharp_reduce_op {
    SHARP_OP_MAX,
    SHARP_OP_MIN,
    SHARP_OP_SUM,
    SHARP_OP_PROD,
    SHARP_OP_LAND,
    SHARP_OP_BAND,
    SHARP_OP_LOR,
    SHARP_OP_BOR,
    SHARP_OP_LXOR,
    SHARP_OP_BXOR,
    SHARP_OP_MAXLOC,
    SHARP_OP_MINLOC,
    SHARP_OP_NULL
};

enum sharp_error_no {
    SHARP_COLL_SUCCESS = 0,
    SHARP_COLL_ERROR = -1, /* an operation has failed: a process or a link is gone */
    SHARP_COLL_ENOT_SUPP = -2,
    SHARP_COLL_ENOMEM = -3,
    SHARP_COLL_EGROUP_ALLOC = -4,
    SHARP_COLL_ECONN_TREE = -5,
    SHARP_COLL_EGROUP_JOIN = -6,
    SHARP_COLL_EQUOTA = -7,
    SHARP_COLL_ESESS_INIT = -8, /* this process runs on no fabric */
    SHARP_COLL_EDEV = -9,
    SHARP_COLL_EINVAL = -10,
    SHARP_COLL_EJOB_CREATE = -11, /* the processes of a job disagree, or another one has failed */
    SHARP_COLL_ETREE_INFO = -12,
    SHARP_COLL_ENOTREE = -13, /* no aggregation node reaches all processes */
    SHARP_COLL_EGROUP_ID = -14,
    SHARP_COLL_EOOB = -15, /* an out-of-band call has failed */
    SHARP_COLL_EGROUP_MCAST = -16,
    SHARP_COLL_EGROUP_TRIM = -17,
    SHARP_COLL_ELOCK_FAILED = -18,
    SHARP_COLL_ELOCK_DENIED = -19,
    SHARP_COLL_ENO_RESOURCE = -20 /* the switches have refused the group */
};

enum sharp_job_features {
    SHARP_FEATURE_LLT = 1,
    SHARP_FEATURE_REPRODUCIBLE = 2,
    SHARP_FEATURE_SAT = 4,
    SHARP_FEATURE_SAT_EXCLUSIVE_LOCK = 8
};

/* All are the same here. */
enum sharp_aggregation_mode {
    SHARP_AGGREGATION_NONE = 0,
    SHARP_AGGREGATION_DATAGRAM,
    SHARP_AGGREGATION_STREAMING
};

enum sharp_data_buffer_type {
    SHARP_DATA_BUFFER,
    SHARP_DATA_IOV /* refused */
};
#define SHARP_COLL_DATA_MAX_IOV 15

enum sharp_data_memory_type {
    SHARP_MEM_TYPE_HOST,
    SHARP_MEM_TYPE_CUDA, /* refused */
    SHARP_MEM_TYPE_LAST
};

/* sharp_coll_config.flags */
enum {
    SHARP_COLL_HIDE_ERRORS =
        1, /* reasons of failed sharp_coll_init and _comm_init are for debugging */
    SHARP_COLL_DISABLE_LAZY_GROUP_RESOURCE_ALLOC = 2 /* always so here */
};

/* sharp_coll_reg_params.field_mask */
enum { SHARP_COLL_REG_FIELD_DMABUF_FD = 1, SHARP_COLL_REG_FIELD_DMABUF_OFFSET = 2 };

enum config_print_flags {
    SHARP_COLL_CONFIG_PRINT_CONFIG = 1,
    SHARP_COLL_CONFIG_PRINT_HEADER = 2,
    SHARP_COLL_CONFIG_PRINT_DOC = 4,
    SHARP_COLL_CONFIG_PRINT_HIDDEN = 8 /* there are none */
};

/* ---- structures ---- */

struct sharp_coll_context;
struct sharp_coll_comm;

struct sharp_coll_config {
    const char
        *ib_dev_list; /* "DEVICE[:1],...": must exist; all of the host are used. NULL, "": any */
    int user_progress_num_polls; /* polls between calls of progress_func in blocking calls */
    int coll_timeout;            /* of blocking calls, in ms; -1: none */
    uint32_t flags;
    int reserved[3];
};
/* To be copied and changed: no devices, 128 polls, no timeout, no flags. */
extern const struct sharp_coll_config sharp_coll_default_config;

/* Calls among processes; they block. 0; anything else is a failure. */
struct sharp_coll_out_of_band_colls {
    int (*bcast)(void *oob_ctx, void *buf, int len, int root);
    int (*barrier)(void *oob_ctx);
    int (*gather)(void *oob_ctx, int root, void *sbuf, void *rbuf,
                  int len); /* rbuf: at root only */
};

struct sharp_coll_comm_init_spec {
    int rank, size;
    void *oob_ctx; /* for the job's calls, among the processes of this communicator */
    const uint32_t *group_world_ranks; /* not needed, not read */
    int reserved[2];
};

struct sharp_coll_init_spec {
    uint64_t job_id; /* the same at all processes */
    int world_rank, world_size;
    int (*progress_func)(void); /* of the caller, called while a blocking call waits; NULL: none */
    int group_channel_idx;      /* not used */
    struct sharp_coll_config config;
    struct sharp_coll_out_of_band_colls oob_colls;
    int world_local_rank;      /* not used */
    int enable_thread_support; /* always */
    void *oob_ctx;             /* for calls among all processes of the job */
    int reserved[4];
};

struct sharp_coll_caps {
    int sharp_pkt_version;
    uint64_t reserved[2];
    struct {
        uint64_t dtypes, tag_dtypes; /* bit 1 << enum sharp_datatype */
        uint64_t reduce_ops;         /* bit 1 << enum sharp_reduce_op */
        uint64_t feature_mask;       /* enum sharp_job_features */
        uint64_t reserved[4];
    } support_mask;
    struct {
        int max_osts, user_data_per_ost, max_groups, max_group_channels, osts_per_group;
    } resources; /* 0: the switches' answers to JOINs say it */
};

struct sharp_data_iov {
    void *ptr;
    size_t length;
    void *mem_handle;
};

struct sharp_coll_reg_params {
    uint64_t field_mask;
    int dmabuf_fd; /* -1: none; others are refused */
    size_t dmabuf_offset;
};

struct sharp_coll_data_desc {
    enum sharp_data_buffer_type type;
    enum sharp_data_memory_type mem_type;
    int reserved[2];
    union {
        struct {
            void *ptr;
            size_t length;
            void *mem_handle; /* of this context; NULL: not registered */
        } buffer;
        struct {
            unsigned count;
            struct sharp_data_iov *vector;
        } iov;
    };
};

/*
 * All-reduce and reduce: `length` elements; in place if both buffers are one. MAXLOC and MINLOC: pairs
 * of a value (FLOAT or INT) and an int32 index; `length` counts pairs, or, where that makes sbuf's
 * length, values and indices. tag_dtype is not read.
 * Reduce-scatter: rbuf's length is the block of each rank; sbuf is the part [offset, offset + its
 * length) of the vector of `size` blocks, and a rank gets what of its block lies in there, from rbuf's
 * ptr on. `length` is not needed. In place: rbuf is where its result lies in sbuf; also, sbuf and rbuf
 * are one pointer, `length` elements are rbuf's length, and the vector is rbuf (as UCC passes it).
 */
struct sharp_coll_reduce_spec {
    int root; /* of a reduce */
    struct sharp_coll_data_desc sbuf_desc, rbuf_desc;
    enum sharp_datatype dtype;
    size_t length; /* elements */
    enum sharp_reduce_op op;
    enum sharp_datatype tag_dtype;
    enum sharp_aggregation_mode aggr_mode;
    int stream_lock_batch_size; /* not used */
    size_t offset;              /* of a reduce-scatter */
    int reserved[2];
};

/*
 * sbuf's length is the block of each rank; rbuf is the part [offset, offset + its length) of the vector
 * of `size` blocks, and sbuf's ptr is where the rank's block starts, or, if it starts before the part,
 * where the part starts. In place: sbuf is where it belongs in rbuf.
 */
struct sharp_coll_gather_spec {
    struct sharp_coll_data_desc sbuf_desc, rbuf_desc;
    enum sharp_datatype dtype; /* bytes are moved as they are */
    size_t size;               /* not needed */
    size_t offset;
    int reserved[4];
};

struct sharp_coll_bcast_spec {
    int root;
    struct sharp_coll_data_desc buf_desc;
    size_t size;
    int reserved[4];
};

/* No function takes it. */
struct sharp_coll_bcast_spec_v2 {
    int root;
    struct sharp_coll_data_desc sbuf_desc, rbuf_desc;
    size_t size;
    int reserved[4];
};

/* ---- contexts ---- */

/* Every process of the job calls it; if one fails, all do. */
int sharp_coll_init(struct sharp_coll_init_spec *spec, struct sharp_coll_context **context);
/* Ends what is left of it: communicators, then registrations. Of this process only. */
int sharp_coll_finalize(struct sharp_coll_context *context);
int sharp_coll_caps_query(struct sharp_coll_context *context, struct sharp_coll_caps *caps);
/* Not needed by who tests requests. */
int sharp_coll_progress(struct sharp_coll_context *context);
/* Operations and bytes of the context so far, to standard error. */
int sharp_coll_dump_stats(struct sharp_coll_context *context);

/* ---- communicators ---- */

/* Every process of the communicator calls it. ENO_RESOURCE, ENOTREE: switches have refused, at all. */
int sharp_coll_comm_init(struct sharp_coll_context *context, struct sharp_coll_comm_init_spec *spec,
                         struct sharp_coll_comm **comm);
/* Every process calls it. Operations that have not ended fail; their requests stay to be freed. */
int sharp_coll_comm_destroy(struct sharp_coll_comm *comm);

/* ---- memory ---- */

/* As often as one likes; without a handle memory is registered for each operation. On failure *mr is
 * NULL. A handle belongs to its context. */
int sharp_coll_reg_mr(struct sharp_coll_context *context, void *buf, size_t size, void **mr);
int sharp_coll_reg_mr_v2(struct sharp_coll_context *context, void *buf, size_t size,
                         const struct sharp_coll_reg_params *params, void **mr);
/* EINVAL: no such handle; ERROR: an operation uses the memory, and the handle stays. */
int sharp_coll_dereg_mr(struct sharp_coll_context *context, void *mr);

/* ---- operations ---- */

/* _nb: returns at once; *req is to be given to _req_free() or _req_wait(). NULL: refused. */
int sharp_coll_do_barrier(struct sharp_coll_comm *comm);
int sharp_coll_do_barrier_nb(struct sharp_coll_comm *comm, void **req);
int sharp_coll_do_allreduce(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec);
int sharp_coll_do_allreduce_nb(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec,
                               void **req);
int sharp_coll_do_reduce(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec);
int sharp_coll_do_reduce_nb(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec,
                            void **req);
int sharp_coll_do_reduce_scatter(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec);
int sharp_coll_do_reduce_scatter_nb(struct sharp_coll_comm *comm,
                                    struct sharp_coll_reduce_spec *spec, void **req);
int sharp_coll_do_allgather(struct sharp_coll_comm *comm, struct sharp_coll_gather_spec *spec);
int sharp_coll_do_allgather_nb(struct sharp_coll_comm *comm, struct sharp_coll_gather_spec *spec,
                               void **req);
int sharp_coll_do_bcast(struct sharp_coll_comm *comm, struct sharp_coll_bcast_spec *spec);
int sharp_coll_do_bcast_nb(struct sharp_coll_comm *comm, struct sharp_coll_bcast_spec *spec,
                           void **req);

/* Non-zero: it has ended, well or not; 0: not yet. NULL has ended. */
int sharp_coll_req_test(void *req);
/* Until it has ended; frees it. The operation's status. */
int sharp_coll_req_wait(void *req);
/* One that has not ended goes on. NULL: nothing. */
int sharp_coll_req_free(void *req);

/* ---- for people ---- */

/* The variables, their values and what they do. exec_name may be NULL. */
int sharp_coll_print_config(FILE *stream, enum config_print_flags flags, const char *exec_name);
/* Never NULL. */
const char *sharp_coll_strerror(int status);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
