"""From a call to a trace: the public `jit`, guards, tracing, compiled functions."""
