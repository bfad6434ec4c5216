"""Passes on the relay stage, in files named like their flags; passes that differ in a table share one."""

from relayc.pipelines.context.passes import Sequential, register_pass
from relayc.pipelines.graph.alter_attention_layout import alter_attention_layout
from relayc.pipelines.graph.alter_op_layout import alter_op_layout
from relayc.pipelines.graph.byte_tables import byte_tables
from relayc.pipelines.graph.canonicalize_ops import canonicalize_ops
from relayc.pipelines.graph.check_indices import check_indices
from relayc.pipelines.graph.combine_parallel import combine_parallel_batch_matmul, combine_parallel_conv2d, combine_parallel_dense
from relayc.pipelines.graph.conv_transpose_to_conv import conv_transpose_to_conv
from relayc.pipelines.graph.dead_code_elimination import dead_code_elimination
from relayc.pipelines.graph.drop_narrowing import drop_narrowing
from relayc.pipelines.graph.eliminate_common_subexpr import eliminate_common_subexpr
from relayc.pipelines.graph.fake_quantization_to_integer import fake_quantization_to_integer
from relayc.pipelines.graph.fold_constant import fold_constant
from relayc.pipelines.graph.fold_explicit_padding import fold_explicit_padding
from relayc.pipelines.graph.fold_scale_axis import fold_scale_axis
from relayc.pipelines.graph.fuse_ops import fuse_ops
from relayc.pipelines.graph.infer_type import infer_type
from relayc.pipelines.graph.inline import inline
from relayc.pipelines.graph.loop_invariant_code_motion import loop_invariant_code_motion
from relayc.pipelines.graph.qnn_canonicalize import qnn_canonicalize
from relayc.pipelines.graph.recognize_attention import recognize_attention
from relayc.pipelines.graph.recognize_patterns import recognize_patterns
from relayc.pipelines.graph.share_parameters import share_parameters
from relayc.pipelines.graph.simplify_expr import simplify_expr
from relayc.pipelines.graph.simplify_inference import simplify_inference
from relayc.pipelines.graph.sink_reshapes import sink_reshapes
from relayc.pipelines.graph.specialize import specialize
from relayc.pipelines.graph.to_mixed_precision import to_mixed_precision
from relayc.pipelines.graph.weight_only_to_dense_blocks import weight_only_to_dense_blocks
from relayc.pipelines.graph.winograd import winograd, winograd_by_size


def graph_pipeline() -> Sequential:
    """The passes between a frontend and the lowering; the PassContext's opt_level says which of them run."""
    passes = [
        infer_type,
        inline,
        specialize,
        simplify_inference,
        canonicalize_ops,
        fake_quantization_to_integer,
        weight_only_to_dense_blocks,
        qnn_canonicalize,
        byte_tables,
        fold_constant,
        simplify_expr,
        eliminate_common_subexpr,
        recognize_patterns,
        recognize_attention,
        fold_constant,  # the transposes that simplify_expr put on weights
        fold_scale_axis,
        conv_transpose_to_conv,
        sink_reshapes,
        simplify_expr,  # transposes that a reshape stood before
        combine_parallel_dense,
        combine_parallel_conv2d,
        fold_constant,
        alter_op_layout,
        alter_attention_layout,
        winograd,
        canonicalize_ops,
        fold_constant,
        eliminate_common_subexpr,
        check_indices,
        loop_invariant_code_motion,
        dead_code_elimination,
        fuse_ops,
        drop_narrowing,
        winograd_by_size,
        to_mixed_precision,
        share_parameters,
    ]
    return Sequential(passes, name="GraphPipeline")


register_pass(graph_pipeline())
