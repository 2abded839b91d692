"""What every operation is made from: declaration, plan of its gradients, catalogue, registry."""
