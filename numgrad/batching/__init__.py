"""Batching: run a function of one example on all of a batch at once (`numgrad.func.vmap`)."""
