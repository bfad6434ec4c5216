"""Type inference of Relay programs."""

from relayc.frontend.relay.inference.errors import TypeInferenceError
from relayc.frontend.relay.inference.infer import infer_expr, infer_module
from relayc.frontend.relay.inference.relations import RELATIONS, TypeSolver
from relayc.frontend.relay.inference.unify import Unifier
