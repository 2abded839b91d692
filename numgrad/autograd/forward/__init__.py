"""Forward mode: dual tensors, pushing tangents forward, linear maps."""
