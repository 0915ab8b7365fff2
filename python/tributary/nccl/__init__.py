# SPDX-License-Identifier: BSD-3-Clause
"""trib nccl: stock NCCL on an emulated fabric, beside trib sim and theory. Its script only finds the package."""
