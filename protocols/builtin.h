/* SPDX-License-Identifier: BSD-3-Clause */
/* Aggregation protocols that come with Tributary: docs/aggregation-protocols.md. */
#ifndef TRIB_PROTOCOLS_BUILTIN_H
#define TRIB_PROTOCOLS_BUILTIN_H

#include <tributary/protocol.h>

extern const struct trib_protocol trib_switchml; /* pool of slots at the switches, two versions */
extern const struct trib_protocol trib_atp;      /* hashed aggregators, servers behind them */
extern const struct trib_protocol trib_ps;       /* parameter server on the ranks */

#endif
