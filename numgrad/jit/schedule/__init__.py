"""Loop schedules: which loops there are, over which dims, and what is fused into each."""
