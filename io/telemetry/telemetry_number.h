/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds numbers to telemetry answers by this DPDK's names for it: 23.03 renamed the functions. */
#ifndef TRIB_IO_TELEMETRY_TELEMETRY_NUMBER_H
#define TRIB_IO_TELEMETRY_TELEMETRY_NUMBER_H

#include <rte_telemetry.h>
#include <rte_version.h>

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define TELEMETRY_NUMBERS RTE_TEL_UINT_VAL
#define telemetry_add     rte_tel_data_add_dict_uint
#define telemetry_append  rte_tel_data_add_array_uint
#else
#define TELEMETRY_NUMBERS RTE_TEL_U64_VAL
#define telemetry_add     rte_tel_data_add_dict_u64
#define telemetry_append  rte_tel_data_add_array_u64
#endif

#endif
