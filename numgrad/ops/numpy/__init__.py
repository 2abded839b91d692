"""NumPy's functions called on tensors: the array-function and ufunc protocols."""
