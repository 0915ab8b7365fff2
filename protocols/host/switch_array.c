/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of a protocol's slots at a switch: accounts for their memory, and checks each access. */
#include "protocols/host/switch_host_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void proto_array_free(struct proto_switch *s, unsigned i)
{
    struct trib_array *a = s->array[i];

    s->cnt.memory -= (uint64_t)a->n * a->bytes;
    free(a->mem);
    free(a->owner);
    free(a);
    s->array[i] = NULL;
}

struct trib_array *proto_api_array(struct trib_switch *pub, struct trib_job *job, const char *name,
                                   uint32_t n, uint32_t bytes)
{
    struct proto_switch *s = of(pub);
    const uint32_t slot = bytes > 1u << 20 ? 0 : (bytes + 7) & ~7u;
    const uint64_t size = (uint64_t)n * slot;
    struct trib_array *a;
    unsigned i = 0;

    while (i < PROTO_ARRAYS && s->array[i])
        i++;
    if (!s->arrays_open)
        proto_doom(s, s->current, "protocol %s: array() outside of open() and job_open()",
                   s->cfg.protocol->name);
    if (!s->arrays_open || i == PROTO_ARRAYS || !size)
        return NULL;
    if (size > s->cfg.memory - s->cnt.memory) {
        snprintf(s->short_of, sizeof(s->short_of), "\"%.16s\" wants %llu bytes, %llu of %zu left",
                 name, (unsigned long long)size,
                 (unsigned long long)(s->cfg.memory - s->cnt.memory), s->cfg.memory);
        return NULL;
    }
    a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    snprintf(a->name, sizeof(a->name), "%s", name);
    a->job = job ? job_of(job) : NULL;
    a->n = n;
    a->bytes = slot;
    a->mem = aligned_alloc(64, (size + slot + 63) & ~63ull);
    a->owner = calloc(n, sizeof(*a->owner));
    if (!a->mem || !a->owner) {
        free(a->mem);
        free(a->owner);
        free(a);
        return NULL;
    }
    memset(a->mem, 0, size + slot);
    s->array[i] = a;
    s->cnt.memory += size;
    if (s->cnt.memory > s->cnt.memory_peak)
        s->cnt.memory_peak = s->cnt.memory;
    return a;
}

void *proto_api_at(struct trib_switch *pub, struct trib_array *a, uint32_t i)
{
    struct proto_switch *s = of(pub);

    if (i < a->n && (!a->job || a->job == s->current || !s->current))
        return a->mem + (size_t)i * a->bytes;
    if (i < a->n)
        proto_doom(s, s->current, "protocol %s: array \"%s\" is another job's",
                   s->cfg.protocol->name, a->name);
    else
        proto_doom(s, s->current, "protocol %s: slot %u of array \"%s\", which has %u",
                   s->cfg.protocol->name, i, a->name, a->n);
    return a->mem + (size_t)a->n * a->bytes;
}

void proto_api_take(struct trib_switch *pub, struct trib_job *job, struct trib_array *a, uint32_t i)
{
    struct proto_switch *s = of(pub);

    if (i >= a->n || a->owner[i]) {
        proto_doom(s, job_of(job), "protocol %s: takes slot %u of array \"%s\", which %s",
                   s->cfg.protocol->name, i, a->name, i >= a->n ? "is not there" : "is taken");
        return;
    }
    a->owner[i] = (uint16_t)(job->index + 1);
    job_of(job)->slots++;
    if (++s->cnt.slots > s->cnt.slots_peak)
        s->cnt.slots_peak = s->cnt.slots;
}

void proto_array_release(struct proto_switch *s, struct proto_job *job, struct trib_array *a,
                         uint32_t i)
{
    a->owner[i] = 0;
    job->slots--;
    s->cnt.slots--;
}

void proto_api_give(struct trib_switch *pub, struct trib_job *job, struct trib_array *a, uint32_t i)
{
    struct proto_switch *s = of(pub);

    if (i >= a->n || a->owner[i] != job->index + 1)
        proto_doom(s, job_of(job),
                   "protocol %s: gives slot %u of array \"%s\", which it has not taken",
                   s->cfg.protocol->name, i, a->name);
    else
        proto_array_release(s, job_of(job), a, i);
}
