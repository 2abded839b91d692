"""From a call to a trace: the public `jit`, tracing, compiled functions."""
