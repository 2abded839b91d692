"""Elementary functions without branches: LLVM vectorises the loops they stand in.

Their steps are plain Python, called with `numgrad.codegen.llvm.scalar_ir.Number`.
"""
