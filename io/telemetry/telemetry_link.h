/* SPDX-License-Identifier: BSD-3-Clause */
/* /trib/link: lists links with faults, shows one, changes its faults. */
#ifndef TRIB_IO_TELEMETRY_LINK_H
#define TRIB_IO_TELEMETRY_LINK_H

#include "io/loop.h"

struct rte_tel_data;

/* In the loop's thread. params: NULL; LINK; LINK,WORD[,WORD...] as in link_change.h. */
void telemetry_link(struct loop *l, const char *params, struct rte_tel_data *d);
/* An answer of one key. The text may contain user input: characters that JSON escapes are replaced.
 * */
void telemetry_say(struct rte_tel_data *d, const char *what, const char *text);

#endif
