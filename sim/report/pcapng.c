/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/report/pcapng.h"

#include "base/assert.h"
#include "system/own_path.h"
#include "roce/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Why nanoseconds where fabric time has picoseconds: if_tsresol can say 10^-12, but Wireshark (4.0)
 * multiplies the fraction of a second by 10^9 in 64 bits before it divides, so that every time
 * behind the first 18 ms of a second comes out wrong.
 */
#define TSRESOL_NS 9

#define BUFFER (1u << 20)

/* Blocks, and the options used (sections 4.1 to 4.3 and 3.5 of the draft). */
enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_PACKET = 6 };
enum { OPT_END = 0, OPT_COMMENT = 1 };
enum { SECTION_APPLICATION = 4 };
enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_SPEED = 8, IF_TSRESOL = 9 };
enum { PACKET_FLAGS = 2 };

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINKTYPE_ETHER   1

/* Numbers are in the order of the machine that writes, as the byte order magic tells. */
struct block_head {
    uint32_t type, length;
};
struct section_body {
    uint32_t magic;
    uint16_t major, minor;
    uint32_t length[2]; /* ones: not known */
};
struct interface_body {
    uint16_t linktype, reserved;
    uint32_t snaplen; /* 0: no limit */
};
struct packet_body {
    uint32_t interface, time_high, time_low, captured, length;
};
struct option_head {
    uint16_t code, length;
};
static_assert(sizeof(struct section_body) == 16, "section 4.1 of the draft");
static_assert(sizeof(struct interface_body) == 8, "section 4.2 of the draft");
static_assert(sizeof(struct packet_body) == 20, "section 4.3 of the draft");

struct pcapng {
    FILE *f;
    int error; /* of the first write that failed */
    uint32_t interfaces;
    uint64_t bytes, block_end; /* written; where the block that is being written must end */
};

static void pcapng_put(struct pcapng *p, const void *data, size_t n)
{
    p->bytes += n;
    if (!p->error && fwrite(data, 1, n, p->f) != n)
        p->error = errno ? errno : EIO;
}

static uint32_t padded(size_t n)
{
    return (uint32_t)(n + 3) & ~3u;
}

static void put_padded(struct pcapng *p, const void *data, size_t n)
{
    static const uint8_t zeros[3];

    pcapng_put(p, data, n);
    pcapng_put(p, zeros, padded(n) - n);
}

static uint32_t option_bytes(size_t n)
{
    return (uint32_t)sizeof(struct option_head) + padded(n);
}

static void put_option(struct pcapng *p, uint16_t code, const void *data, size_t n)
{
    struct option_head h = {code, (uint16_t)n};

    pcapng_put(p, &h, sizeof(h));
    put_padded(p, data, n);
}

/* bytes: between head and tail. Returns the length of the whole block, which its tail repeats. */
static uint32_t pcapng_begin(struct pcapng *p, uint32_t type, uint32_t bytes)
{
    struct block_head h = {type, (uint32_t)(sizeof(h) + bytes + sizeof(uint32_t))};

    p->block_end = p->bytes + h.length;
    pcapng_put(p, &h, sizeof(h));
    return h.length;
}

/* The last option, and the length that pcapng_begin() returned. */
static void pcapng_end(struct pcapng *p, uint32_t length)
{
    struct option_head h = {OPT_END, 0};

    pcapng_put(p, &h, sizeof(h));
    pcapng_put(p, &length, sizeof(length));
    T_ASSERT_HOT(p->bytes == p->block_end, "a block is not as long as its head says");
}

int pcapng_create(struct pcapng **out, const char *path, const char *application,
                  const char *comment)
{
    struct pcapng *p = calloc(1, sizeof(*p));
    struct section_body b = {BYTE_ORDER_MAGIC, 1, 0, {UINT32_MAX, UINT32_MAX}};
    uint32_t n;
    int fd;

    *out = NULL;
    if (!p)
        return -ENOMEM;
    fd = own_output_open(path, 0);
    p->f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!p->f) {
        free(p);
        return fd < 0 ? fd : -ENOMEM;
    }
    setvbuf(p->f, NULL, _IOFBF, BUFFER);
    n = pcapng_begin(p, BLOCK_SECTION,
                     (uint32_t)sizeof(b) + option_bytes(strlen(application)) +
                         option_bytes(strlen(comment)) + option_bytes(0));
    pcapng_put(p, &b, sizeof(b));
    put_option(p, SECTION_APPLICATION, application, strlen(application));
    put_option(p, OPT_COMMENT, comment, strlen(comment));
    pcapng_end(p, n);
    *out = p;
    return 0;
}

void pcapng_interface(struct pcapng *p, const char *name, const char *description,
                      uint64_t rate_bps)
{
    struct interface_body b = {.linktype = LINKTYPE_ETHER};
    uint8_t resolution = TSRESOL_NS;
    uint32_t n = pcapng_begin(
        p, BLOCK_INTERFACE,
        (uint32_t)sizeof(b) + option_bytes(strlen(name)) + option_bytes(strlen(description)) +
            option_bytes(sizeof(rate_bps)) + option_bytes(1) + option_bytes(0));

    p->interfaces++;
    pcapng_put(p, &b, sizeof(b));
    put_option(p, IF_NAME, name, strlen(name));
    put_option(p, IF_DESCRIPTION, description, strlen(description));
    put_option(p, IF_SPEED, &rate_bps, sizeof(rate_bps));
    put_option(p, IF_TSRESOL, &resolution, 1);
    pcapng_end(p, n);
}

void pcapng_frame(struct pcapng *p, uint32_t interface, int64_t time_ps,
                  enum pcapng_direction direction, const struct rte_mbuf *m, uint32_t captured,
                  uint32_t length)
{
    static const uint8_t zeros[3];
    uint64_t ns = (uint64_t)(time_ps / PS_PER_NS);
    struct packet_body b = {interface, (uint32_t)(ns >> 32), (uint32_t)ns, captured, length};
    uint32_t flags = direction, left = captured;
    uint32_t n;

    T_ASSERT_HOT(interface < p->interfaces, "a frame is of an interface that no block describes");
    T_ASSERT_HOT(captured <= length, "more of a frame is captured than it has");
    n = pcapng_begin(p, BLOCK_PACKET,
                     (uint32_t)sizeof(b) + padded(captured) + option_bytes(sizeof(flags)) +
                         option_bytes(0));
    pcapng_put(p, &b, sizeof(b));
    for (; m && left; m = m->next) {
        uint32_t part = RTE_MIN(left, (uint32_t)m->data_len);

        pcapng_put(p, rte_pktmbuf_mtod(m, const void *), part);
        left -= part;
    }
    pcapng_put(p, zeros, padded(captured) - captured);
    put_option(p, PACKET_FLAGS, &flags, sizeof(flags));
    pcapng_end(p, n);
}

int pcapng_close(struct pcapng *p)
{
    int rc;

    if (!p)
        return 0;
    rc = p->error;
    if (fclose(p->f) && !rc)
        rc = errno;
    free(p);
    return -rc;
}
