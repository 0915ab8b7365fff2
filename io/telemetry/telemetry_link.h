/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /trib/link: lists links that differ from the conf, shows one, changes its state, rate, latency and
 * faults.
 * /trib/offenders: lists processes on hosts' links that have sent frames that they may not send
 * (switch/nic.h). The log reports each reason at most once a second. Setting a link up reopens its shut
 * slots.
 */
#ifndef TRIB_IO_TELEMETRY_LINK_H
#define TRIB_IO_TELEMETRY_LINK_H

#include "io/loop.h"

struct rte_tel_data;

/* Call these in the loop's thread. params: NULL; LINK; LINK,WORD[,WORD...] as in link_change.h. LINK may be
 * "all". */
void telemetry_link(struct loop *l, const char *params, struct rte_tel_data *d);
/* Call it after a link went down or up: tells programs and sysfs; up also reopens shut slots. */
void telemetry_link_changed(struct loop *l, unsigned link, bool up);
/* Like telemetry_link(). params: NODE; NODE,down; NODE,up; NODE,forget (a switch forgets its groups). */
void telemetry_node(struct loop *l, const char *params, struct rte_tel_data *d);
/* Adds one line for each offender. */
void telemetry_offenders(struct loop *l, const char *params, struct rte_tel_data *d);
void offenders_watch(struct loop *l);
void offenders_window(struct loop *l, int64_t ps); /* ps: fabric time */
/* Answers with one key. text may contain user input: characters that JSON would escape are replaced. */
void telemetry_say(struct rte_tel_data *d, const char *what, const char *text);

#endif
