/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts DPDK's EAL on one core, without privileges, huge pages, devices or visible files. */
#ifndef TRIB_SIM_EAL_SIM_EAL_H
#define TRIB_SIM_EAL_SIM_EAL_H

/* mib: memory in MiB. 0; or -1 and rte_errno. */
int sim_eal_start(unsigned mib);
void sim_eal_end(void);

#endif
