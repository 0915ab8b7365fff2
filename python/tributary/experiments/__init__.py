# SPDX-License-Identifier: BSD-3-Clause
"""Programs of a checkout for experiments: a table of protocols, a figure of speedups, schedules of published algorithms."""
