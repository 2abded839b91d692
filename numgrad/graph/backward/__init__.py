"""The backward pass: `backward` and `grad`, the engine, and where gradients of leaves end."""
