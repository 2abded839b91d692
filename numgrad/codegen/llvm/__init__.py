"""What is written as LLVM instructions, and not as functions that Numba compiles, and why.

Kernels are `@njit` functions of Python. Four things in them are single calls of intrinsics, which
stand in this folder. Each is there for a reason that was measured, and said where it is:

- scalar functions without branches (`scalar_ir`): as functions that Numba compiles, the parts of a
  sine took ten times as long to compile as the loop around them;
- folds of many numbers (`fold_ir`, `run_ir`, `combine_ir`) and maps of blocks (`map_ir`), made of
  vectors (`vector_ir`): as loops of Python, folds took 50 times as long to compile as ``x + 1``;
  and LLVM does not vectorise a sum, for it may not change the order of additions by itself;
- reading and writing by pointer (`pointers`): indexing makes a choice of each position that may be
  negative, which LLVM does not vectorise;
- the width of vectors (`width`): loops that compute much with a number run up to twice as fast with
  whole registers, and up to 1.8 times as fast with the instructions of several rounds in turns.
"""
