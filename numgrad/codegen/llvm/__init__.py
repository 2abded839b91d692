"""Code written as LLVM instructions: scalar functions, vector loops, folds, maps."""
