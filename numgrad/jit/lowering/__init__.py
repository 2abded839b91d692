"""From primitives to loops over elements."""
