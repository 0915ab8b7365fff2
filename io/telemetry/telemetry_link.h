/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /trib/link: lists links that are not as in the conf, shows one, changes its state, rate, latency and
 * faults.
 * /trib/offenders: the processes behind hosts' links that have sent what they may not send
 * (switch/nic.h). The log has a line about them, at most one a second of each kind; a link that is
 * set up opens what was shut.
 */
#ifndef TRIB_IO_TELEMETRY_LINK_H
#define TRIB_IO_TELEMETRY_LINK_H

#include "io/loop.h"

struct rte_tel_data;

/* In the loop's thread. params: NULL; LINK; LINK,WORD[,WORD...] as in link_change.h; LINK may be all. */
void telemetry_link(struct loop *l, const char *params, struct rte_tel_data *d);
/* Once a link is down or up: tells programs and sysfs; a link that is up opens what was shut. */
void telemetry_link_changed(struct loop *l, unsigned link, bool up);
/* As telemetry_link(); params: NODE; NODE,down; NODE,up; NODE,forget (a switch its groups). */
void telemetry_node(struct loop *l, const char *params, struct rte_tel_data *d);
/* A line for each. */
void telemetry_offenders(struct loop *l, const char *params, struct rte_tel_data *d);
void offenders_watch(struct loop *l);
void offenders_window(struct loop *l, int64_t ps); /* of fabric time */
/* An answer of one key. The text may contain user input: characters that JSON escapes are replaced.
 * */
void telemetry_say(struct rte_tel_data *d, const char *what, const char *text);

#endif
