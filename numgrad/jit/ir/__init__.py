"""The graph of a traced function: its values, validation, costs, symbolic sizes."""
