/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARP_API_SHARP_H
#define SHARP_API_SHARP_H

#include <sharp/api/sharp_coll.h>
#include <sharp/api/version.h>

#endif
