"""From a schedule to the source of a program of loops."""
