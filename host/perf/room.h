/* How much memory this process can still have: what does not fit is refused before anything starts,
 * since the kernel promises more than there is and kills in the middle of a run. */
#ifndef TRIB_PERF_ROOM_H
#define TRIB_PERF_ROOM_H

#include <stddef.h>

/* Bytes; SIZE_MAX where nobody knows. */
size_t room_bytes(void);
#endif
