"""Neighbor samplers."""
