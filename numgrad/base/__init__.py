"""The lowest floor: dtypes, devices, layouts, pytrees, progress bars, tuning constants."""
