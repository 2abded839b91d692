"""The graph layer: tensors as graph vertices, nodes, the engine, grad modes, versions, hooks."""
