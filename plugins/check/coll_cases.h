/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of the CollNet tables. All run at all ranks. */
#ifndef TRIB_PLUGINS_CHECK_COLL_CASES_H
#define TRIB_PLUGINS_CHECK_COLL_CASES_H

#include "plugins/check/plugin_rank.h"

/* coll_reduce.c */
void coll_support(struct rank *r);
void coll_types(struct rank *r);
void coll_sizes(struct rank *r);
void coll_in_place(struct rank *r);
void coll_in_flight(struct rank *r);
void coll_flush(struct rank *r);
/* coll_windows.c */
void coll_gather(struct rank *r);
void coll_gather_windows(struct rank *r);
void coll_scatter(struct rank *r);
void coll_scatter_windows(struct rank *r);
/* coll_life.c */
void coll_several(struct rank *r);
void coll_reopen(struct rank *r);
void coll_close_requests(struct rank *r);
void coll_null(struct rank *r);
void coll_stale(struct rank *r);
void coll_bad_arguments(struct rank *r);
void coll_killed(struct rank *r);

#endif
