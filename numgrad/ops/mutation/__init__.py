"""In-place operations: filling, resizing, reshaping, storages."""
