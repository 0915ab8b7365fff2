/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joins multicast groups from as many process slots of a host as there are free, up to SLOTS: each
 * sends REPORTS version 3 reports (RFC 3376) of 180 groups each, all different.
 *
 *     igmp_reports SLOTS REPORTS SECONDS
 *
 * Prints "joined" when all are sent, and holds them for SECONDS.
 */
#include "tests/hostile/raw.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SLOTS 3 /* memory for their frames */
#define RECORDS   180u
#define IP_BYTES  24u /* with the router alert option */

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8), p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16), put16(p + 2, v & 0xffff);
}

static void set_sum(uint8_t *p, uint32_t n, uint8_t *at)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < n; i += 2)
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    put16(at, ~sum & 0xffff);
}

static struct rte_mbuf *report(struct raw *r, uint32_t first)
{
    uint8_t f[14 + IP_BYTES + 8 + 8 * RECORDS] = {0}, *ip = f + 14, *ig = ip + IP_BYTES;

    memcpy(f, (uint8_t[]){0x01, 0x00, 0x5e, 0, 0, 22}, 6);
    roce_mac_of_ip(r->ip, f + 6);
    put16(f + 12, 0x0800);
    ip[0] = 0x46, ip[1] = 0xc0, ip[8] = 1, ip[9] = 2, ip[20] = 0x94, ip[21] = 4;
    put16(ip + 2, sizeof(f) - 14);
    put32(ip + 12, r->ip);
    put32(ip + 16, 0xe0000016);
    set_sum(ip, IP_BYTES, ip + 10);
    ig[0] = 0x22;
    put16(ig + 6, RECORDS);
    for (uint32_t i = 0; i < RECORDS; i++) {
        ig[8 + 8 * i] = 4; /* to exclude nobody */
        put32(ig + 8 + 8 * i + 4, first + i);
    }
    set_sum(ig, 8 + 8 * RECORDS, ig + 2);
    return raw_bytes(r, f, sizeof(f));
}

int main(int argc, char **argv)
{
    static struct raw r[MAX_SLOTS];
    unsigned slots, reports, n = 0;

    if (argc != 4 || atoi(argv[1]) < 1 || atoi(argv[1]) > MAX_SLOTS)
        raw_die("usage: igmp_reports SLOTS REPORTS SECONDS");
    slots = (unsigned)atoi(argv[1]), reports = (unsigned)atoi(argv[2]);
    while (n < slots && raw_try_open(&r[n], NULL, 0, -1, 2000) == 0)
        n++;
    if (!n)
        raw_die("no free slot");
    for (unsigned k = 0; k < reports; k++)
        for (unsigned i = 0; i < n; i++) {
            raw_send(&r[i], report(&r[i], 0xe6000000 + (k * MAX_SLOTS + i) * RECORDS));
            raw_drain(&r[i]);
            usleep(20000); /* the NIC's queue of control frames is short */
        }
    for (unsigned i = 0; i < n; i++)
        raw_flush(&r[i], 2000);
    printf("joined with %u slots\n", n);
    fflush(stdout);
    sleep((unsigned)atoi(argv[3]));
    for (unsigned i = 0; i < n; i++)
        raw_close(&r[i]);
    return 0;
}
