"""What to write in place of Python's branches and loops on traced values, with the user's names."""
