"""Sources of data sets, one file each."""
