"""`relayc.te`: tensor expressions under TVM's names. A person says what each element of a tensor is; the rest of the compiler is the same.

    from relayc import te

    n = te.var("n")
    A, B = te.placeholder((n, 64), name="A"), te.placeholder((64, 32), name="B")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((n, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    kernel = relayc.compile_kernel(te.create_prim_func([A, B, C]))
"""

from relayc.pipelines.te.language.expressions import (
    Cast,
    Const,
    Expr,
    IterVar,
    Reduce,
    Select,
    TensorElement,
    Var,
    cast,
    const,
    if_then_else,
    logical_not,
    select,
    size_var,
    var,
)
from relayc.pipelines.te.language.functions import (
    abs,
    acos,
    acosh,
    add,
    all,
    any,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    ceil,
    ceildiv,
    clz,
    cos,
    cosh,
    div,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    fmod,
    indexdiv,
    indexmod,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    logaddexp,
    multiply,
    nearbyint,
    popcount,
    power,
    round,
    rsqrt,
    shift_left,
    shift_right,
    sigmoid,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from relayc.pipelines.te.language.primfunc import create_prim_func
from relayc.pipelines.te.language.reductions import (
    CommReducer,
    comm_reducer,
    infinity,
    max,
    max_value,
    min,
    min_value,
    prod,
    reduce_axis,
    sum,
)
from relayc.pipelines.te.language.rules import register_compute
from relayc.pipelines.te.language.tensors import (
    ComputeOp,
    ExternOp,
    PlaceholderOp,
    Tensor,
    TensorSlice,
    call_packed,
    compute,
    extern,
    placeholder,
)

__all__ = [name for name in dir() if not name.startswith("_") and name != "relayc"]
