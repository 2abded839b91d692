"""What every operation is made from: declaration, dispatch, promotion, registry."""
