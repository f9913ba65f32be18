"""Row format version 2 in plain NumPy: parameters, rows, fit. Every backend must match it bit for bit."""
