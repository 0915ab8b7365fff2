/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out why DPDK did not take a PCI device that a conf names. */
#ifndef TRIB_IO_PORT_PCI_H
#define TRIB_IO_PORT_PCI_H

#include <stdbool.h>
#include <stddef.h>

/* Whether spec is "0000:01:00.0" or "01:00.0", perhaps with arguments after a comma. */
bool port_pci_is(const char *spec);
/*
 * Writes the reason and a remedy into text: no such device, not a NIC, bound to no driver or to one that
 * DPDK does not use, no IOMMU, no access. sys, dev: /sys and /dev, or a test's own. Returns text.
 */
const char *port_pci_why(const char *sys, const char *dev, const char *spec, char *text,
                         size_t size);

#endif
