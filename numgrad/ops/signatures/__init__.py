"""Public functions from their signatures: parsing, arguments, generated functions, docstrings."""
