"""Training: the command line, the model and the loop."""
