"""Products of matrices and vectors, einsum, and permutations of dims."""
