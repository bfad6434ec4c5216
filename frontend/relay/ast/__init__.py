"""Programs of the Relay language as Python objects: expressions, types, modules, and what is done with them by structure."""

import inspect

from relayc.frontend.relay.ast.analysis import (
    all_type_vars,
    all_vars,
    bound_type_vars,
    bound_vars,
    free_type_vars,
    free_vars,
    post_order_visit,
    well_formed,
)
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.base import NDArray, Node, SourceName, Span, ndarray
from relayc.frontend.relay.ast.build import ScopeBuilder, TupleWrapper, as_expr, bind, bind_params_by_name, const, var, while_loop
from relayc.frontend.relay.ast.devices import CompilationConfig, VirtualDevice
from relayc.frontend.relay.ast.equality import assert_structural_equal, structural_equal, structural_hash
from relayc.frontend.relay.ast.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    Id,
    If,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    TypeData,
    Var,
)
from relayc.frontend.relay.ast.functor import ExprFunctor, ExprMutator, ExprVisitor, TypeFunctor, TypeMutator, TypeVisitor
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.ast.types import (
    Any,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    IntImm,
    Kind,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeRelation,
    TypeVar,
    scalar_type,
)

# What the imports above offer.
__all__ = sorted(name for name, value in globals().items() if not name.startswith("_") and not inspect.ismodule(value))
