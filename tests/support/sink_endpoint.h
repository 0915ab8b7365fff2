/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint that frees what it gets and sends nothing: in place of an aggregation node. */
#ifndef TRIB_TESTS_SUPPORT_SINK_ENDPOINT_H
#define TRIB_TESTS_SUPPORT_SINK_ENDPOINT_H

#include "roce/endpoint.h"

/* Counts the frames in *taken, which may be NULL. */
struct endpoint sink_endpoint(unsigned *taken);

#endif
