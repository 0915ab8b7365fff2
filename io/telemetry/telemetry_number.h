/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers in answers of telemetry, by the names that this DPDK has for them: 23.03 has new ones. */
#ifndef TRIB_IO_TELEMETRY_TELEMETRY_NUMBER_H
#define TRIB_IO_TELEMETRY_TELEMETRY_NUMBER_H

#include <rte_telemetry.h>
#include <rte_version.h>

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define TELEMETRY_NUMBERS RTE_TEL_UINT_VAL
static inline int telemetry_add(struct rte_tel_data *dict, const char *name, uint64_t v)
{
    return rte_tel_data_add_dict_uint(dict, name, v);
}
static inline int telemetry_append(struct rte_tel_data *array, uint64_t v)
{
    return rte_tel_data_add_array_uint(array, v);
}
#else
#define TELEMETRY_NUMBERS RTE_TEL_U64_VAL
static inline int telemetry_add(struct rte_tel_data *dict, const char *name, uint64_t v)
{
    return rte_tel_data_add_dict_u64(dict, name, v);
}
static inline int telemetry_append(struct rte_tel_data *array, uint64_t v)
{
    return rte_tel_data_add_array_u64(array, v);
}
#endif

#endif
