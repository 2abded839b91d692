"""The backward pass of a Python loop recorded as a loop: its turns, found among the nodes."""
