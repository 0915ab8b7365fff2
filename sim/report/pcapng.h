/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pcapng file (draft-ietf-opsawg-pcapng): one section, an interface for each link, a packet block
 * a frame, times in nanoseconds of fabric time.
 *
 * Written here because neither library that is linked can: libpcap reads pcapng but writes pcap,
 * which has one nameless interface, and rte_pcapng takes interfaces from ethdev ports and times
 * from the TSC.
 */
#ifndef TRIB_SIM_REPORT_PCAPNG_H
#define TRIB_SIM_REPORT_PCAPNG_H

#include <rte_mbuf.h>
#include <stdint.h>

struct pcapng;

/* Bits of the packet block's flags word. */
enum pcapng_direction { PCAPNG_INBOUND = 1, PCAPNG_OUTBOUND = 2 };

/* application: the program that writes; comment: on the section. 0 or -errno. */
int pcapng_create(struct pcapng **p, const char *path, const char *application,
                  const char *comment);
/* Interfaces are numbered from 0 in the order of these calls, which come before any frame. */
void pcapng_interface(struct pcapng *p, const char *name, const char *description,
                      uint64_t rate_bps);
/* Writes the first `captured` bytes of m; length: bytes of the frame on the link. */
void pcapng_frame(struct pcapng *p, uint32_t interface, int64_t time_ps,
                  enum pcapng_direction direction, const struct rte_mbuf *m, uint32_t captured,
                  uint32_t length);
/* 0, or -errno of the first write that failed. Frees p; NULL: 0. */
int pcapng_close(struct pcapng *p);

#endif
