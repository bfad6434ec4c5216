"""Probabilities of several classes from those of pairs of them: ml.coupled_probabilities."""

from relayc.dialects.relay.base import Op, Operand, Pattern, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least, require_equal
from relayc.dialects.relay.kinds import FLOAT


class CoupledProbabilities(Op, name="ml_coupled_probabilities", relay_name="ml.coupled_probabilities"):
    """The p of sum 1 with the least p^T Q p, of each matrix Q, as LIBSVM and ONNX Runtime find it (not in Relay).

    Of probabilities r[i, j] of class i among i and j (Wu, Lin and Weng, 2004), Q[i, i] is the sum of r[j, i]^2, and Q[i, j] is
    -r[j, i] r[i, j]. From equal probabilities on, one class after the other is improved, until all elements of Q p are within 0.005 /
    classes of p^T Q p, at most 100 times.

    Operand: system [rows, classes, classes], floats, with at least one class. Result: [rows, classes] of its type.
    """

    system: Operand
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        system = op.system
        FLOAT.require("system", system)
        check(system.rank == 3, "system", "a shape [rows, classes, classes]", system)
        require_at_least(1, system.shape[2], "system", "at least one class", system)
        require_equal(system.shape[1], system.shape[2], "system, dimension 1", system.shape[2], system)
        return system.with_shape(system.shape[:2])
