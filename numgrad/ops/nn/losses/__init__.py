"""Losses: of real numbers, classes, probabilities, margins and sequences of labels."""
