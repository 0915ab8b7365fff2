/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of the CollNet tables. All run at all ranks. */
#ifndef TRIB_PLUGINS_CHECK_COLL_CASES_H
#define TRIB_PLUGINS_CHECK_COLL_CASES_H

#include "plugins/check/plugin_rank.h"

/* coll_reduce.c */
void coll_support(struct plugin_rank *r);
void coll_types(struct plugin_rank *r);
void coll_sizes(struct plugin_rank *r);
void coll_in_place(struct plugin_rank *r);
void coll_in_flight(struct plugin_rank *r);
void coll_flush(struct plugin_rank *r);
/* coll_windows.c */
void coll_gather(struct plugin_rank *r);
void coll_gather_windows(struct plugin_rank *r);
void coll_scatter(struct plugin_rank *r);
void coll_scatter_windows(struct plugin_rank *r);
/* coll_life.c */
void coll_several(struct plugin_rank *r);
void coll_reopen(struct plugin_rank *r);
void coll_close_requests(struct plugin_rank *r);
void coll_null(struct plugin_rank *r);
void coll_stale(struct plugin_rank *r);
void coll_bad_arguments(struct plugin_rank *r);
void coll_killed(struct plugin_rank *r);

#endif
