"""Elementary functions without branches: LLVM vectorises the loops they stand in."""
