"""Products with sparse matrices: nn.sparse_dense."""

from relayc.dialects.relay.base import Op, Operand, Pattern, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least, require_equal
from relayc.dialects.relay.kinds import INTEGER, NUMBER, same_dtype


class SparseDense(Op, name="nn_sparse_dense", relay_name="nn.sparse_dense"):
    """D x S^T, or S x D^T with `sparse_lhs`, of a dense matrix D [rows, k] and a sparse matrix S [units, k] (Relay nn.sparse_dense).

    S is compressed by rows: sparse_data [count] are its stored elements, sparse_indices [count] their columns, and sparse_indptr
    [units + 1] says where in them each row begins, and the last one ends. With sparse_data [count, r, c] S is made of blocks of r rows
    and c columns in the same form: indices and rows are those of blocks. Elements at the same place are added. What lies outside of S, or
    of the stored elements, is clamped.
    """

    dense_data: Operand
    sparse_data: Operand
    sparse_indices: Operand
    sparse_indptr: Operand
    sparse_lhs: bool = False
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        dense, data, indices, indptr = op.dense_data, op.sparse_data, op.sparse_indices, op.sparse_indptr
        NUMBER.require("dense_data", dense)
        same_dtype(dense_data=dense, sparse_data=data)
        check(dense.rank == 2, "dense_data", "rank 2", dense)
        check(data.rank in (1, 3), "sparse_data", "rank 1, or rank 3 for blocks", data)
        for name, numbers in (("sparse_indices", indices), ("sparse_indptr", indptr)):
            INTEGER.require(name, numbers)
            check(numbers.rank == 1, name, "rank 1", numbers)
        require_equal(indices.shape[0], data.shape[0], "sparse_indices", f"{data.shape[0]} element(s) (sparse_data {data})", indices)
        require_at_least(1, indptr.shape[0], "sparse_indptr", "at least 1 element", indptr)
        rows, columns = data.shape[1:] or (1, 1)
        require_at_least(columns, dense.shape[1], "dense_data", f"at least {columns} columns, those of a block", dense)
        units = None if indptr.shape[0] is None or rows is None else (indptr.shape[0] - 1) * rows
        return dense.with_shape((units, dense.shape[0]) if op.sparse_lhs else (dense.shape[0], units))
