/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's NICs. They stay open until the process ends, because NCCL never closes all of them. */
#include "plugins/nccl/nccl_priv.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PREFIX      "trib"
#define LATENCY_US  1.0f
#define SILENCE_LOG 18 /* 4.096 us * 2^18: 1.07 s of wall time until a packet is sent again */
#define LEAST_LOG   10 /* 4.2 ms of fabric time, longer than queues of switches */

static struct nccl_device device[NCCL_DEVICES];
static int n_devices;
static bool opened;

/* ---- the port ---- */

static int speed_of(const struct ibv_port_attr *p)
{
    static const int lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
    int rate = 0;

    switch (p->active_speed) {
    case 1:
        rate = 2500;
        break;
    case 2:
        rate = 5000;
        break;
    case 4:
    case 8:
        rate = 10000;
        break;
    case 16:
        rate = 14000;
        break;
    default: /* 32: 25 Gb/s; each higher bit doubles it */
        for (int s = 32, r = 25000; s <= 128 && !rate; s *= 2, r *= 2)
            rate = p->active_speed == s ? r : 0;
    }
    return rate * (p->active_width < sizeof(lanes) / sizeof(lanes[0]) ? lanes[p->active_width] : 1);
}

static int64_t mono_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t fabric_ns(struct ibv_context *ctx)
{
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

    return ibv_query_rt_values_ex(ctx, &v)
               ? -1
               : (int64_t)v.raw_clock.tv_sec * 1000000000 + v.raw_clock.tv_nsec;
}

/* The ACK timeout for SILENCE_LOG of wall time: the device measures it in fabric time, which is
 * slower by the dilation, but processes are late in wall time. */
static uint8_t ack_timeout(struct ibv_context *ctx)
{
    int64_t fabric = fabric_ns(ctx), wall = mono_ns();
    uint8_t t = SILENCE_LOG;

    if (fabric < 0)
        return t;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    fabric = fabric_ns(ctx) - fabric;
    wall = mono_ns() - wall;
    for (; t > LEAST_LOG && fabric * 3 / 2 < wall; t--)
        wall /= 2;
    return t;
}

/* ---- opening ---- */

static int device_open(struct nccl_device *d, struct ibv_device *from)
{
    char link[128];
    struct ibv_port_attr port;
    struct ibv_device_attr attr;

    *d = (struct nccl_device){.guid = be64toh(ibv_get_device_guid(from)), .index = n_devices};
    snprintf(d->name, sizeof(d->name), "%s", ibv_get_device_name(from));
    d->ctx = ibv_open_device(from);
    if (!d->ctx)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "%s: it cannot be opened", d->name);
    d->pd = ibv_alloc_pd(d->ctx);
    if (!d->pd || ibv_query_port(d->ctx, 1, &port) || ibv_query_device(d->ctx, &attr) ||
        ibv_query_gid(d->ctx, 1, 0, &d->gid)) {
        if (d->pd)
            ibv_dealloc_pd(d->pd);
        ibv_close_device(d->ctx);
        return nccl_refuse(NCCL_SYSTEM_ERROR, "%s: port 1 and its GID cannot be read", d->name);
    }
    d->mtu = port.active_mtu;
    d->speed = speed_of(&port);
    d->max_qp = attr.max_qp;
    d->ack_timeout = ack_timeout(d->ctx);
    snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", d->name);
    d->path = realpath(link, NULL);
    nccl_tell("%s: %d Mb/s, packets are repeated after 4.096 us * 2^%u", d->name, d->speed,
              d->ack_timeout);
    return NCCL_SUCCESS;
}

int nccl_devices_open(void)
{
    struct ibv_device **list;
    int n = 0, rc = NCCL_SUCCESS;

    if (opened)
        return rc;
    list = ibv_get_device_list(&n);
    for (int i = 0; list && i < n && !rc && n_devices < NCCL_DEVICES; i++) {
        if (strncmp(ibv_get_device_name(list[i]), PREFIX, sizeof(PREFIX) - 1) != 0)
            continue;
        rc = device_open(&device[n_devices], list[i]);
        n_devices += !rc;
    }
    if (list)
        ibv_free_device_list(list);
    opened = n_devices > 0;
    if (!opened && !rc)
        nccl_tell("found no RDMA device of an emulated host: is the program run by trib exec?");
    return rc;
}

/* ---- questions ---- */

int nccl_devices(int *n)
{
    if (!n)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "devices: found no place for the number");
    nccl_lock();
    *n = n_devices;
    nccl_unlock();
    return NCCL_SUCCESS;
}

int nccl_device_get(int dev, const char *call, struct nccl_device **d)
{
    if (dev < 0 || dev >= n_devices)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "%s: found device %d, expected one below %d",
                           call, dev, n_devices);
    *d = &device[dev];
    return NCCL_SUCCESS;
}

int nccl_properties(int dev, struct nccl_props_v12 *props)
{
    struct nccl_device *d = NULL;
    int rc;

    if (!props)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "getProperties: found no place for them");
    nccl_lock();
    rc = nccl_device_get(dev, "getProperties", &d);
    nccl_unlock();
    if (rc)
        return rc;
    *props = (struct nccl_props_v12){
        .name = d->name,
        .pci_path = d->path,
        .guid = d->guid,
        .ptr_support = NCCL_PTR_HOST,
        .speed = d->speed,
        .port = 1,
        .latency = LATENCY_US,
        .max_comms = d->max_qp,
        .max_recvs = NCCL_GROUP,
        .vdev = {.ndevs = 1, .devs = {dev}},
        .max_p2p_bytes = NCCL_MOST_BYTES,
        .max_coll_bytes = NCCL_MOST_BYTES,
        .max_multi_request_size = 1,
        .rail_id = NCCL_NO_CLASS,
        .plane_id = NCCL_NO_CLASS,
    };
    return NCCL_SUCCESS;
}
