/*
 * A port of the rim: any ethdev by DPDK device arguments, and memif as the cable between processes. The only place, with
 * eal.c, where EAL and ethdev are used; trib-switch and the HCA's rim share it.
 *
 * net_memif of DPDK 22.11 unmaps a dead peer's regions in EAL's interrupt thread while a worker may be in rx or tx. The rim is linked with
 * --wrap=rte_intr_callback_register (and _unregister*), so that every interrupt handler runs under rim_lock(), which each burst holds.
 */
#ifndef TRIB_RIM_PORT_H
#define TRIB_RIM_PORT_H

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

/* EAL for a process of ours: --no-huge when no huge pages are free, --no-pci unless pci, in memory, no signals taken.
 * telemetry: give the process a telemetry socket with this file prefix; NULL: none. 0 or -errno with a message on stderr. */
int rim_eal_init(const char *prog, const char *telemetry_prefix, unsigned mem_mb, const char *const *extra, unsigned n_extra);
void rim_eal_cleanup(void);

void rim_lock(void);
void rim_unlock(void);

struct rim_port;

struct memif_cfg { const char *socket; bool listener; uint32_t id; uint16_t queues; uint8_t log2_ring; const char *name; struct rte_mempool *pool; };

int rim_port_memif(struct rim_port **p, const struct memif_cfg *cfg);
int rim_port_ethdev(struct rim_port **p, const char *devargs, struct rte_mempool *pool);
void rim_port_close(struct rim_port *p);
/* A client whose listener was absent retries here; call now and then. Returns whether the port is up. */
bool rim_port_up(struct rim_port *p);
/* Callable only by the port's owner thread; take rim_lock inside. tx returns how many were taken; the rest stay with the caller. Frames received are one segment with cleared meta. */
uint16_t rim_port_rx(struct rim_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
uint16_t rim_port_tx(struct rim_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);

#endif
