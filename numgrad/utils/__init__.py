"""Tools around autograd: checkpoints, `RemovableHandle`, checks of operations of one's own."""

from numgrad.utils import checkpoint, hooks
from numgrad.utils.operation_checks import check_operation

__all__ = ["check_operation", "checkpoint", "hooks"]
