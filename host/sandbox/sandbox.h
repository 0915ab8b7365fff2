/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The view of the machine that a program has as a host of the fabric: a mount namespace of its own
 * in which /sys/class/infiniband, /sys/class/infiniband_verbs and /dev/infiniband show that host's
 * HCAs and nothing else. libibverbs' calls are libtribverbs' business; this is for what programs
 * read beside them (UCX and NCCL ask sysfs for the type of a GID, UCX wants the character device).
 * The boot id is the host's own too, so that two hosts are two machines to those who compare it.
 * Nothing outside the namespace changes, and it is gone with its last process.
 */
#ifndef TRIB_HOST_SANDBOX_SANDBOX_H
#define TRIB_HOST_SANDBOX_SANDBOX_H

#include "fabric/fabric.h"
#include "io/rundir.h"

/*
 * Moves the calling process (single-threaded) into such a namespace; without root into a user
 * namespace too, in which it keeps its own user and group and gains nothing once it execs. 0 or
 * -errno with *what naming what was refused: a child tries first, so the process is as before.
 * lib: libtribverbs.so; beside it is what a program that runs without it is told (host/hint).
 */
int enter_host(const struct rundir *rd, const struct fab_node *host, const char *lib,
               const char **what);

/* The files of one host's HCAs, as the kernel would show them below /sys/class/infiniband and
 * /sys/class/infiniband_verbs. 0 or -errno. */
int tree_infiniband(const struct rundir *rd, const struct fab_node *host, const char *dir);
int tree_infiniband_verbs(const struct fab_node *host, const char *dir);
/* The network interfaces that its GIDs are said to be of, below /sys/class/net: for those who look
 * there; no kernel has them. */
int tree_net(const struct fab_node *host, const char *dir);

#endif
