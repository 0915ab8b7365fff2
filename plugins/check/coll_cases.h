/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of the CollNet tables. All run at all ranks. */
#ifndef TRIB_PLUGINS_CHECK_COLL_CASES_H
#define TRIB_PLUGINS_CHECK_COLL_CASES_H

#include "plugins/check/rank.h"

#endif
