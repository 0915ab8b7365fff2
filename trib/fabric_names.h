/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of a fabric's parts, for completion. */
#ifndef TRIB_TRIB_FABRIC_NAMES_H
#define TRIB_TRIB_FABRIC_NAMES_H

#include "trib/run/words.h"

struct fabric;

/* what: hosts, nodes or links. */
struct words fabric_names(const struct fabric *f, const char *what);

#endif
