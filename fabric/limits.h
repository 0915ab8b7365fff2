/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of nodes, ports, links, addresses, trees and the like, and limits of one file, each of
 * which is reported by an error of its own. Programs that run a fabric keep numbers in 16 bits: in
 * tables of switches, in pages that processes share and in frames. Those that only compute (trib
 * plan, trib model) are built with FAB_WIDE.
 */
#ifndef TRIB_FABRIC_LIMITS_H
#define TRIB_FABRIC_LIMITS_H

#include <stdint.h>

#define FAB_RUN_HOSTS  4096    /* limit: hosts of a fabric that runs */
#define FAB_RUN_NODES  8192    /* limit: nodes of a fabric that runs */
#define FAB_RUN_LINKS  49152   /* limit: links of a fabric that runs */
#define FAB_RUN_DESTS  65534   /* limit: addresses of a fabric that runs */
#define FAB_PLAN_HOSTS 131072  /* limit: hosts of a fabric that is only planned */
#define FAB_PLAN_NODES 256000  /* limit: nodes of a fabric that is only planned */
#define FAB_PLAN_LINKS 2097152 /* limit: links of a fabric that is only planned */
#define FAB_PLAN_DESTS 4194304 /* limit: addresses of a fabric that is only planned */
#ifdef FAB_WIDE
typedef uint32_t fab_id;
#define FAB_NONE      0xffffffffu
#define FAB_MAX_HOSTS FAB_PLAN_HOSTS
#define FAB_MAX_NODES FAB_PLAN_NODES
#define FAB_MAX_LINKS FAB_PLAN_LINKS
#define FAB_MAX_DESTS FAB_PLAN_DESTS
#else
typedef uint16_t fab_id;
#define FAB_NONE      0xffffu
#define FAB_MAX_HOSTS FAB_RUN_HOSTS
#define FAB_MAX_NODES FAB_RUN_NODES
#define FAB_MAX_LINKS FAB_RUN_LINKS
#define FAB_MAX_DESTS FAB_RUN_DESTS
#endif
#define FAB_MAX_PORTS      1024 /* limit: ports of a switch */
#define FAB_MAX_HOST_PORTS 20   /* limit: ports of a host: 18 NVSwitch planes and two NICs */
#define FAB_MAX_PROCS      128  /* limit: switch processes of a fabric */
#define FAB_MAX_MULTICAST  1024 /* limit: multicast groups of a fabric */
#define FAB_MAX_SLOTS      250  /* limit: processes of a host: 8 bits of a QPN name them */

#endif
