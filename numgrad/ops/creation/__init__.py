"""Operations that make tensors: from data, of a shape, ranges, random numbers."""
