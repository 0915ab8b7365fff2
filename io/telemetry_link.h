/* SPDX-License-Identifier: BSD-3-Clause */
/* /trib/link: links that were disturbed, the state of one, and disturbing it. */
#ifndef TRIB_IO_TELEMETRY_LINK_H
#define TRIB_IO_TELEMETRY_LINK_H

#include "io/loop.h"

struct rte_tel_data;

/* In the loop's thread. params: NULL; LINK; LINK,WORD[,WORD...] as in link_change.h. */
void telemetry_link(struct loop *l, const char *params, struct rte_tel_data *d);
/* An answer of one word. Text that somebody wrote may be in it, and goes into JSON. */
void telemetry_say(struct rte_tel_data *d, const char *what, const char *text);

#endif
