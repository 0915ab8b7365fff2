/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of switch_host.c and switch_array.c, which has the arrays of slots. */
#ifndef TRIB_PROTOCOLS_HOST_SWITCH_HOST_PRIV_H
#define TRIB_PROTOCOLS_HOST_SWITCH_HOST_PRIV_H

#include "protocols/host/spin.h"
#include "protocols/host/switch_host.h"

struct trib_array {
    char name[24];
    struct proto_job *job; /* NULL: the switch's */
    uint32_t n, bytes;
    uint8_t *mem;    /* n slots, and one for scratch */
    uint16_t *owner; /* [n] index + 1 of the job that holds the slot; 0: free */
};

struct proto_job {
    struct trib_job pub;
    void *ctx;
    uint32_t slots;
    char why[PROTO_TEXT];
};

struct proto_switch {
    struct trib_switch pub;
    struct proto_switch_cfg cfg;
    struct proto_job *job[PROTO_JOBS];
    unsigned n_jobs;
    struct trib_array *array[PROTO_ARRAYS];
    struct proto_switch_counters cnt;
    bool arrays_open; /* within open() or job_open() */
    bool any_doomed;
    char short_of[96];         /* the array that did not fit; "": none */
    struct proto_job *current; /* whose packet is being handled */
    const struct trib_packet *packet;
    uint32_t work_bytes, work_ops;
    int64_t now, timer;
    struct proto_spin spin;
};

static inline struct proto_switch *of(struct trib_switch *s)
{
    return (struct proto_switch *)s;
}

static inline struct proto_job *job_of(struct trib_job *j)
{
    return (struct proto_job *)j;
}

/* Dooms the job; the first reason is kept. */
void proto_doom(struct proto_switch *s, struct proto_job *job, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* struct trib_switch_api (switch_array.c) */
struct trib_array *proto_api_array(struct trib_switch *pub, struct trib_job *job, const char *name,
                                   uint32_t n, uint32_t bytes);
void *proto_api_at(struct trib_switch *pub, struct trib_array *a, uint32_t i);
void proto_api_take(struct trib_switch *pub, struct trib_job *job, struct trib_array *a,
                    uint32_t i);
void proto_api_give(struct trib_switch *pub, struct trib_job *job, struct trib_array *a,
                    uint32_t i);
void proto_array_free(struct proto_switch *s, unsigned i);
/* Frees slot i, which the job holds. */
void proto_array_release(struct proto_switch *s, struct proto_job *job, struct trib_array *a,
                         uint32_t i);

#endif
