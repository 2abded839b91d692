"""What knows nothing else of this package: dtypes, devices, layouts, pytrees, progress."""
