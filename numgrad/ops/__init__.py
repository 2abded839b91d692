"""The catalogue: every operation beside its derivative rule, a file a family.

Importing this package fills the registries of `numgrad.ops.core.registry` and the `CATALOGUE`.
"""

from numgrad.ops.core.catalogue import load_files

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
        "copies",
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
    "mutation": ["filling", "method_functions", "storage_methods"],
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
load_files(
    __name__,
    [
        *[f"{family}.{file}" for family, files in _FAMILIES.items() for file in files],
        "movement.view_copies",  # last: it reads what the others declared
    ],
)
