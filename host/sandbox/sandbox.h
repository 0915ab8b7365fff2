/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program on an emulated host sees of the machine. In a mount namespace of its own,
 * /sys/class/infiniband, /sys/class/infiniband_verbs and /dev/infiniband show only that host's
 * HCAs, and /sys/devices has them as PCI devices beside the machine's. libtribverbs serves
 * libibverbs' calls; the namespace serves programs that read these files directly (UCX and NCCL
 * read the type of a GID from sysfs, UCX needs the character device). Each host has its own boot
 * id, so that programs that compare it see two hosts as two machines. Nothing outside the namespace
 * changes, and it disappears with its last process.
 */
#ifndef TRIB_HOST_SANDBOX_SANDBOX_H
#define TRIB_HOST_SANDBOX_SANDBOX_H

#include "fabric/fabric.h"
#include "machine/rundir.h"

/*
 * Moves the calling process, which must have one thread, into such a namespace. Without root it
 * also enters a user namespace, in which it keeps its user and group and gains no privilege by
 * exec. 0; or -errno, and *what names what was refused: the process is then unchanged, because a
 * child tries first. lib: path of libtribverbs.so; libtribhint.so (host/hint) is in the same
 * directory.
 */
int enter_host(const struct rundir *rd, const struct fab_node *host, const char *lib,
               const char **what);

/* Makes these mounts in a mount namespace that the caller has made. pid: distinguishes user
 * namespaces; 0: there is none. 0; or -errno and *what, as above. */
int show_host(const struct rundir *rd, const struct fab_node *host, const char *lib, unsigned pid,
              const char **what);

/* Writes the files of one host's HCAs to dir, as the kernel shows them below /sys/class/infiniband
 * and /sys/class/infiniband_verbs. 0 or -errno. */
int tree_infiniband(const struct rundir *rd, const struct fab_node *host, const char *dir);
int tree_infiniband_verbs(const struct fab_node *host, const char *dir);

/* Write the HCAs as PCI devices below /sys/devices/pci PCI_DOMAIN:00, which must exist, and their
 * buses below /sys/class/pci_bus, where existing names stay. 0 or -errno. */
#define PCI_DOMAIN "7472" /* above the domains that firmware assigns */
#define PCI_PATH   80
void tree_pci_device(unsigned port, char path[PCI_PATH]);
int tree_pci(const struct fab_node *host);
int tree_pci_buses(const struct fab_node *host, const char *dir);
/* Writes the network interfaces of the host's GIDs below /sys/class/net, for programs that read
 * them there. The kernel has no such interfaces. 0 or -errno. */
int tree_net(const struct rundir *rd, const struct fab_node *host, const char *dir);

#endif
