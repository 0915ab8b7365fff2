/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes and offsets that programs were compiled with. */
#include "plugins/sharp/sharp_priv.h"

#define SIZE(s, n)  _Static_assert(sizeof(struct s) == (n), "size of " #s)
#define AT(s, f, n) _Static_assert(offsetof(struct s, f) == (n), "offset of " #s "." #f)

SIZE(sharp_coll_config, 32);
AT(sharp_coll_config, ib_dev_list, 0);
AT(sharp_coll_config, user_progress_num_polls, 8);
AT(sharp_coll_config, coll_timeout, 12);
AT(sharp_coll_config, flags, 16);
AT(sharp_coll_config, reserved, 20);

SIZE(sharp_coll_out_of_band_colls, 24);
AT(sharp_coll_out_of_band_colls, bcast, 0);
AT(sharp_coll_out_of_band_colls, barrier, 8);
AT(sharp_coll_out_of_band_colls, gather, 16);

SIZE(sharp_coll_comm_init_spec, 32);
AT(sharp_coll_comm_init_spec, rank, 0);
AT(sharp_coll_comm_init_spec, size, 4);
AT(sharp_coll_comm_init_spec, oob_ctx, 8);
AT(sharp_coll_comm_init_spec, group_world_ranks, 16);
AT(sharp_coll_comm_init_spec, reserved, 24);

SIZE(sharp_coll_init_spec, 120);
AT(sharp_coll_init_spec, job_id, 0);
AT(sharp_coll_init_spec, world_rank, 8);
AT(sharp_coll_init_spec, world_size, 12);
AT(sharp_coll_init_spec, progress_func, 16);
AT(sharp_coll_init_spec, group_channel_idx, 24);
AT(sharp_coll_init_spec, config, 32);
AT(sharp_coll_init_spec, oob_colls, 64);
AT(sharp_coll_init_spec, world_local_rank, 88);
AT(sharp_coll_init_spec, enable_thread_support, 92);
AT(sharp_coll_init_spec, oob_ctx, 96);
AT(sharp_coll_init_spec, reserved, 104);

SIZE(sharp_coll_caps, 112);
AT(sharp_coll_caps, sharp_pkt_version, 0);
AT(sharp_coll_caps, reserved, 8);
AT(sharp_coll_caps, support_mask.dtypes, 24);
AT(sharp_coll_caps, support_mask.tag_dtypes, 32);
AT(sharp_coll_caps, support_mask.reduce_ops, 40);
AT(sharp_coll_caps, support_mask.feature_mask, 48);
AT(sharp_coll_caps, support_mask.reserved, 56);
AT(sharp_coll_caps, resources.max_osts, 88);
AT(sharp_coll_caps, resources.user_data_per_ost, 92);
AT(sharp_coll_caps, resources.max_groups, 96);
AT(sharp_coll_caps, resources.max_group_channels, 100);
AT(sharp_coll_caps, resources.osts_per_group, 104);

SIZE(sharp_data_iov, 24);
AT(sharp_data_iov, ptr, 0);
AT(sharp_data_iov, length, 8);
AT(sharp_data_iov, mem_handle, 16);

SIZE(sharp_coll_reg_params, 24);
AT(sharp_coll_reg_params, field_mask, 0);
AT(sharp_coll_reg_params, dmabuf_fd, 8);
AT(sharp_coll_reg_params, dmabuf_offset, 16);

SIZE(sharp_coll_data_desc, 40);
AT(sharp_coll_data_desc, type, 0);
AT(sharp_coll_data_desc, mem_type, 4);
AT(sharp_coll_data_desc, reserved, 8);
AT(sharp_coll_data_desc, buffer.ptr, 16);
AT(sharp_coll_data_desc, buffer.length, 24);
AT(sharp_coll_data_desc, buffer.mem_handle, 32);
AT(sharp_coll_data_desc, iov.count, 16);
AT(sharp_coll_data_desc, iov.vector, 24);

SIZE(sharp_coll_reduce_spec, 136);
AT(sharp_coll_reduce_spec, root, 0);
AT(sharp_coll_reduce_spec, sbuf_desc, 8);
AT(sharp_coll_reduce_spec, rbuf_desc, 48);
AT(sharp_coll_reduce_spec, dtype, 88);
AT(sharp_coll_reduce_spec, length, 96);
AT(sharp_coll_reduce_spec, op, 104);
AT(sharp_coll_reduce_spec, tag_dtype, 108);
AT(sharp_coll_reduce_spec, aggr_mode, 112);
AT(sharp_coll_reduce_spec, stream_lock_batch_size, 116);
AT(sharp_coll_reduce_spec, offset, 120);
AT(sharp_coll_reduce_spec, reserved, 128);

SIZE(sharp_coll_gather_spec, 120);
AT(sharp_coll_gather_spec, sbuf_desc, 0);
AT(sharp_coll_gather_spec, rbuf_desc, 40);
AT(sharp_coll_gather_spec, dtype, 80);
AT(sharp_coll_gather_spec, size, 88);
AT(sharp_coll_gather_spec, offset, 96);
AT(sharp_coll_gather_spec, reserved, 104);

SIZE(sharp_coll_bcast_spec, 72);
AT(sharp_coll_bcast_spec, root, 0);
AT(sharp_coll_bcast_spec, buf_desc, 8);
AT(sharp_coll_bcast_spec, size, 48);
AT(sharp_coll_bcast_spec, reserved, 56);

SIZE(sharp_coll_bcast_spec_v2, 112);
AT(sharp_coll_bcast_spec_v2, root, 0);
AT(sharp_coll_bcast_spec_v2, sbuf_desc, 8);
AT(sharp_coll_bcast_spec_v2, rbuf_desc, 48);
AT(sharp_coll_bcast_spec_v2, size, 88);
AT(sharp_coll_bcast_spec_v2, reserved, 96);

#define IS(name, n) _Static_assert((name) == (n), #name)
IS(SHARP_DTYPE_FLOAT, 4);
IS(SHARP_DTYPE_FLOAT_SHORT, 8);
IS(SHARP_DTYPE_NULL, 12);
IS(SHARP_OP_MAX, 0);
IS(SHARP_OP_LAND, 4);
IS(SHARP_OP_MAXLOC, 10);
IS(SHARP_OP_NULL, 12);
IS(SHARP_AGGREGATION_STREAMING, 2);
IS(SHARP_MEM_TYPE_LAST, 2);
IS(SHARP_API, (3L << 24) | (7L << 16));
