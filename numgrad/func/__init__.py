"""Transformations of functions: derivatives that take a function and give values."""

from numgrad.func.forward import jvp

__all__ = ["jvp"]
