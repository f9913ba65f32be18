"""Edges of any number, in the order they come in, sorted to CSC: in memory, or through files."""
