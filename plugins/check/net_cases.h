/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of the net tables, in the files of what they are about. All run at both ranks. */
#ifndef TRIB_PLUGINS_CHECK_NET_CASES_H
#define TRIB_PLUGINS_CHECK_NET_CASES_H

#include "plugins/check/plugin_rank.h"

/* net_life.c; the first two of both kinds of tables */
void case_properties(struct rank *r);
void case_contexts(struct rank *r);
void net_would_block(struct rank *r);
void net_several(struct rank *r);
void net_reopen(struct rank *r);
void net_one_listen(struct rank *r);
void net_register(struct rank *r);
/* net_messages.c */
void net_sizes(struct rank *r);
void net_larger(struct rank *r);
void net_windows(struct rank *r);
void net_early_receive(struct rank *r);
void net_early_send(struct rank *r);
void net_in_flight(struct rank *r);
void net_orders(struct rank *r);
void net_no_sizes(struct rank *r);
void net_optional(struct rank *r);
void net_flush(struct rank *r);
void net_both_ways(struct rank *r);
/* net_groups.c */
void net_groups(struct rank *r);
void net_groups_larger(struct rank *r);
void net_groups_in_flight(struct rank *r);
void net_drawn(struct rank *r);
/* net_faults.c */
void net_close_requests(struct rank *r);
void net_close_early(struct rank *r);
void net_killed_sender(struct rank *r);
void net_killed_receiver(struct rank *r);
void net_killed_in_flight(struct rank *r);
/* net_strict.c */
void net_null(struct rank *r);
void net_stale(struct rank *r);
void net_wrong(struct rank *r);
void net_bad_arguments(struct rank *r);
void net_too_large(struct rank *r);
void net_dmabuf(struct rank *r);

#endif
