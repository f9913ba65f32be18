"""From the parts of a data set to its folder: what they are, what they need, and how they are written."""
