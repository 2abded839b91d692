"""The catalogue: every operation beside its derivative rule, a file a family.

Files are loaded when one of their names is first asked for (`numgrad.ops.later`). What tensors
can't be without is loaded here.
"""

import numgrad.ops.creation.creation
import numgrad.ops.creation.legacy_types
import numgrad.ops.indexing.assignment
import numgrad.ops.movement.casts
import numgrad.ops.movement.view_geometry
import numgrad.ops.mutation.inplace
import numgrad.ops.pointwise.arithmetic  # noqa: F401
