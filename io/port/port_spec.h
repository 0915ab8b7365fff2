/* SPDX-License-Identifier: BSD-3-Clause */
/* What a conf's `port` names: the arguments of a DPDK device, and why there is none. */
#ifndef TRIB_IO_PORT_SPEC_H
#define TRIB_IO_PORT_SPEC_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct port_spec {
    const char *text;        /* as in the conf; the caller's */
    char args[512];          /* of the device: "net_af_packet0,iface=eth1,..." */
    char iface[IF_NAMESIZE]; /* the kernel's interface that it uses; "": none */
};

/* Says on stderr what is wrong with a port. Returns rc, or -EINVAL for 0. */
int port_refuse(const char *text, int rc, const char *why);
/*
 * Takes the conf's text. dir: of relative paths of sockets; n: number of the port in this process. Refuses
 * an interface that is not there, and one that this process may not open. 0 or -errno, reported.
 */
int port_spec_read(struct port_spec *s, const char *text, const char *dir, unsigned n);
/* Reports that DPDK made no device of it (rc: its error, or 0). Returns -errno. */
int port_spec_refuse(const struct port_spec *s, int rc);
bool port_spec_is_xdp(const struct port_spec *s);
/* The interface's MTU; 0: it has no interface, or nobody knows. */
unsigned port_spec_mtu(const struct port_spec *s);

#endif
