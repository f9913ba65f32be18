"""Rows on a device: its cache, host rows it reads over PCIe, staged rows of the disk, lookups, streams."""
