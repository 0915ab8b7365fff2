/* SPDX-License-Identifier: BSD-3-Clause */
/* Translates a conf's `port` into arguments of a DPDK device, or says why there is none. */
#ifndef TRIB_IO_PORT_SPEC_H
#define TRIB_IO_PORT_SPEC_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct port_spec {
    const char *text;        /* as in the conf; the caller's */
    char args[512];          /* for DPDK: "net_af_packet0,iface=eth1,..." */
    char iface[IF_NAMESIZE]; /* the kernel's interface behind it; "": none */
};

/* Reports on stderr what is wrong with a port. Returns rc, or -EINVAL if rc is 0. */
int port_refuse(const char *text, int rc, const char *why);
/*
 * Reads the conf's text. dir: base of relative socket paths; n: number of the port in this process.
 * Refuses an interface that does not exist or that this process may not open. 0 or -errno, reported.
 */
int port_spec_read(struct port_spec *s, const char *text, const char *dir, unsigned n);
/* Reports that DPDK made no device of it. rc: DPDK's error, or 0. Returns -errno. */
int port_spec_refuse(const struct port_spec *s, int rc);
bool port_spec_is_xdp(const struct port_spec *s);
/* The interface's MTU; 0: there is no interface, or its MTU is unknown. */
unsigned port_spec_mtu(const struct port_spec *s);

#endif
