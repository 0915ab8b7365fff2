/*
 * What this process can have of the machine: how much memory still, since the kernel promises more
 * than there is and kills in the middle of a run, so what does not fit is refused before anything
 * starts; and how many cores.
 */
#ifndef TRIB_PERF_ROOM_H
#define TRIB_PERF_ROOM_H

#include <stddef.h>

/* Bytes; SIZE_MAX where nobody knows. */
size_t room_bytes(void);
/* Those on which it may run, of a container not more than it is given time of; at least one. */
unsigned room_cores(void);

#endif
