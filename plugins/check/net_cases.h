/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of the net tables, by file. All run at both ranks. */
#ifndef TRIB_PLUGINS_CHECK_NET_CASES_H
#define TRIB_PLUGINS_CHECK_NET_CASES_H

#include "plugins/check/plugin_rank.h"

/* net_life.c; the first two serve both kinds of tables */
void case_properties(struct plugin_rank *r);
void case_contexts(struct plugin_rank *r);
void net_would_block(struct plugin_rank *r);
void net_several(struct plugin_rank *r);
void net_reopen(struct plugin_rank *r);
void net_one_listen(struct plugin_rank *r);
void net_register(struct plugin_rank *r);
/* net_messages.c */
void net_sizes(struct plugin_rank *r);
void net_larger(struct plugin_rank *r);
void net_windows(struct plugin_rank *r);
void net_early_receive(struct plugin_rank *r);
void net_early_send(struct plugin_rank *r);
void net_in_flight(struct plugin_rank *r);
void net_orders(struct plugin_rank *r);
void net_no_sizes(struct plugin_rank *r);
void net_optional(struct plugin_rank *r);
void net_flush(struct plugin_rank *r);
void net_both_ways(struct plugin_rank *r);
/* net_groups.c */
void net_groups(struct plugin_rank *r);
void net_groups_larger(struct plugin_rank *r);
void net_groups_in_flight(struct plugin_rank *r);
void net_drawn(struct plugin_rank *r);
/* net_faults.c */
void net_close_requests(struct plugin_rank *r);
void net_close_early(struct plugin_rank *r);
void net_killed_sender(struct plugin_rank *r);
void net_killed_receiver(struct plugin_rank *r);
void net_killed_in_flight(struct plugin_rank *r);
/* net_strict.c */
void net_null(struct plugin_rank *r);
void net_stale(struct plugin_rank *r);
void net_wrong(struct plugin_rank *r);
void net_bad_arguments(struct plugin_rank *r);
void net_too_large(struct plugin_rank *r);
void net_dmabuf(struct plugin_rank *r);

#endif
