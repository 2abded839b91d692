"""The catalogue: every operation beside its derivative rule, a file a family.

Importing this package fills the registries of `numgrad.ops.core.registry` and the `CATALOGUE`.
"""

import importlib

_FAMILIES = {
    "creation": [
        "creation",
        "from_data",
        "generator",
        "legacy_types",
        "queries",
        "random",
        "random_fills",
        "ranges",
    ],
    "indexing": [
        "assignment",
        "gathering",
        "index_along",
        "indexing",
        "masking",
        "putting",
        "rearranging",
        "scattering",
        "unraveling",
    ],
    "linalg": ["addmm", "einsum", "linalg", "permuting", "products"],
    "movement": [
        "casts",
        "complex_views",
        "diagonals",
        "joining",
        "padding",
        "shape",
        "slicing",
        "splitting",
        "strided",
        "unit_dims",
        "windows",
    ],
    "mutation": ["filling", "method_functions", "storages"],
    "pointwise": [
        "activation",
        "arithmetic",
        "comparison",
        "complex",
        "complex_parts",
        "division",
        "exponential",
        "logarithms",
        "rounding",
        "selection",
        "trigonometric",
    ],
    "reduction": [
        "argreduce",
        "extrema",
        "moments",
        "nan_reductions",
        "norms",
        "prod",
        "reductions",
        "scans",
        "softmax",
        "sorting",
        "take_along",
        "truth",
    ],
}
for _family, _files in _FAMILIES.items():
    for _file in _files:
        importlib.import_module(f"{__name__}.{_family}.{_file}")

# Last: it reads what the others declared.
importlib.import_module(f"{__name__}.movement.view_copies")
