"""Tools around autograd: checkpoints, `RemovableHandle`, checks of operations, kernels' sources."""

from numgrad.utils import checkpoint, hooks
from numgrad.utils.kernel_sources import kernel_sources
from numgrad.utils.operation_checks import check_operation

__all__ = ["check_operation", "checkpoint", "hooks", "kernel_sources"]
