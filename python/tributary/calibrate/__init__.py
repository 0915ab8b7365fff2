# SPDX-License-Identifier: BSD-3-Clause
"""Fits a conf's costs to measured results: ``trib calibrate``.

read.py finds out what a file is and has it read to Series of Rows (rows.py) by the reader of its format: nccl.py (text of nccl-tests and trib),
json_results.py, perftest.py, osu.py, imb.py. _conf_text.py (of the package) is the conf as text whose values have places, so that comments stay; predict.py has
trib sim predict; fit.py is least squares of relative errors over the rows that are no outliers. command.py is main().
"""
