"""The path of a call: keys, tables of programs, and the source that these are made of."""
