/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocols that are built in. */
#ifndef TRIB_PROTOCOLS_BUILTIN_H
#define TRIB_PROTOCOLS_BUILTIN_H

#include <tributary/protocol.h>

extern const struct trib_protocol trib_switchml, trib_ps, trib_atp;

#endif
