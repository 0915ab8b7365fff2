# SPDX-License-Identifier: BSD-3-Clause
"""Predictions of trib-sim beside published measurements of real machines, series by series: ``scripts/validate`` of a checkout, whose
tests/validate/series.tsv says what each series is and which algorithm stands for it; measured.tsv has its rows.

``published`` reads them, ``simulated`` predicts them, ``tuner`` says what NCCL would choose, ``judged`` compares, ``fitted`` is --fit.
"""
