/* The EAL and the one pool of frames of a simulation: memory of this process alone. */
#ifndef TRIB_SIM_MEMORY_H
#define TRIB_SIM_MEMORY_H

#include <rte_mempool.h>

/* A pool of n frames, the EAL started for it; `more` bytes will be needed beside it. NULL: err says
 * what there is and what would be needed. */
struct rte_mempool *memory_frames(unsigned n, size_t more, char *err, size_t size);
void memory_end(void);

#endif
