"""Imports numgrad before pytest looks for examples in it.

Otherwise pytest imports the folder ``numgrad/jit`` by itself, after the package, and that module
takes the place of the function ``numgrad.jit``.
"""

import numgrad  # noqa: F401
