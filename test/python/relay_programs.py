"""Programs of the Relay language, and texts that differ from them in one token: what the parser, inference, passes, analyses and lowering
make of them."""

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relayc.dialects.relay.errors import NeedsControl
from relayc.frontend.relay import analysis, ast
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.lowering import lower
from relayc.frontend.relay.text import parse_module
from relayc.relay import transform

CHANGES = 30
"""Texts that differ from each program."""

PROGRAMS: dict[str, str] = {
    "operators": """
    def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) {
      let %a = add(%x, %y);
      let %b = add(%x, %y);
      let %c = multiply(%a, negative(%b));
      let %unused = exp(%c);
      (nn.relu(%c) / 2f, cast(%c, dtype="int32"), sum(%a - %b, axis=[1], keepdims=True), %x)
    }""",
    "constants": """
    def @main(%x: Tensor[(2, 2), float32]) {
      let %k = (2f + 3f) * 4f;
      let %one = ones(shape=[2, 2], dtype="float32");
      let %s = shape_of(%x);
      if (less(1, 2)) { add(%x * %k, %one) } else { %x - zeros(shape=[2, 2], dtype="float32") }
    }""",
    "convolutions": """
    def @main(%x: Tensor[(1, 8, 9, 7), float32], %w: Tensor[(8, 8, 3, 3), float32], %v: Tensor[(8, 8, 3, 3), float32],
              %b: Tensor[(8), float32]) {
      let %p = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);
      let %c = nn.conv2d(%p, %w, padding=[0, 0, 0, 0], channels=8, kernel_size=[3, 3]);
      let %d = nn.relu(nn.bias_add(%c, %b));
      let %e = nn.conv2d(%d, %v, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
      let %f = nn.conv2d(%d, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
      let %m = nn.max_pool2d(add(%e, %f), pool_size=[2, 2], strides=[2, 2]);
      nn.softmax(nn.batch_flatten(nn.global_avg_pool2d(%m)))
    }""",
    "dense": """
    def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(8, 16), float32], %v: Tensor[(8, 16), float32], %u: Tensor[(5, 8), float32]) {
      let %a = nn.dense(%x, %w, units=None);
      let %b = nn.dense(%x, %v, units=None);
      let %c = nn.dense(nn.relu(%a) * tanh(%b), %u, units=None);
      let %n = nn.layer_norm(%c, ones(shape=[5], dtype="float32"), zeros(shape=[5], dtype="float32"));
      (nn.dropout(%n).0, nn.batch_norm(%n, nn.dropout(ones(shape=[5], dtype="float32")).0, zeros(shape=[5], dtype="float32"),
        zeros(shape=[5], dtype="float32"), ones(shape=[5], dtype="float32")).0)
    }""",
    "closures": """
    def @twice[A](%f: fn (A) -> A) -> fn (A) -> A { fn (%v: A) -> A { %f(%f(%v)) } }
    def @never(%x: float32) -> float32 { %x - 1f }
    def @scale(%x: float32, %by: float32) -> float32 { %x * %by }
    def @main(%x: float32, %k: float32) {
      let %add = fn (%a: float32) -> float32 { %a + %k };
      let %pair = fn [A](%a: A) { (%a, %a) };
      let %compose = fn (%f: fn (float32) -> float32, %g: fn (float32) -> float32, %v: float32) { %f(%g(%v)) };
      (@twice(%add)(%x), %pair(%x).1, %compose(%add, fn (%q: float32) { @scale(%q, %q) }, %x), @twice(@twice(%add))(%k))
    }""",
    "recursion": """
    def @factorial(%n: int32) -> int32 { if (%n < 2) { 1 } else { %n * @factorial(%n - 1) } }
    def @even(%n: int32) -> bool { if (%n < 1) { True } else { @odd(%n - 1) } }
    def @odd(%n: int32) -> bool { if (%n < 1) { False } else { @even(%n - 1) } }
    def @loop(%n: int32, %x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> (Tensor[(3), float32], int32) {
      if (%n < 10) { @loop(%n + 3, %y, %x * %y) } else { (%x, %n) }
    }
    def @main(%n: int32, %x: Tensor[(3), float32]) {
      let %sum = fn (%i: int32, %a: int32) -> int32 { if (%i < %n) { %sum(%i + 1, %a + %i) } else { %a } };
      (@factorial(5), @even(7), @loop(%n, %x, %x + %x), %sum(0, 0))
    }""",
    "data": """
    type List[A] { Cons(A, List[A]), Nil, }
    type Tree { Leaf(Tensor[(2), float32]), Node(Tree, Tree), }
    def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
      match (%l) { Cons(%a, %rest) => Cons(%f(%a), @map(%f, %rest)), Nil => Nil, }
    }
    def @total(%l: List[int32], %s: int32) -> int32 { match (%l) { Cons(%x, %rest) => @total(%rest, %s + %x), Nil => %s } }
    def @fold(%t: Tree) -> Tensor[(2), float32] {
      match (%t) { Leaf(%x) => tanh(%x), Node(Leaf(%a), Leaf(%b)) => %a - %b, Node(%l, %r) => @fold(%l) + @fold(%r) }
    }
    def @main(%n: int32, %x: Tensor[(2), float32]) {
      let %l = Cons(%n, Cons(2, Nil));
      (@total(@map(fn (%v: int32) { %v * 3 }, %l), 0), @fold(Node(Node(Leaf(%x), Leaf(%x * 2f)), Leaf(%x))),
       match? (%l) { Cons(%first, _) => %first }, match ((1, %l)) { (_, Nil) => 0, (%k, %rest) => %k })
    }""",
    "references": """
    def @add(%r: ref(int32), %n: int32) -> int32 {
      if (%n == 0) { ref_read(%r) } else { ref_write(%r, ref_read(%r) + %n); @add(%r, %n - 1) }
    }
    def @main(%n: int32, %x: Tensor[(3), float32]) {
      let %r = ref(5);
      let %before = ref_read(%r);
      let %bump = fn () { ref_write(%r, ref_read(%r) * 2) };
      let %a = %bump();
      let %sum = @add(%r, %n);
      let %t = ref(%x);
      let %u = ref_write(%t, ref_read(%t) * %x);
      (%before, %sum, ref_read(%r), ref_read(%t))
    }""",
    "quantized": """
    def @main(%x: Tensor[(1, 4, 6, 6), int8], %w: Tensor[(8, 4, 3, 3), int8], %y: Tensor[(1, 8, 6, 6), int8]) {
      let %a = qnn.dequantize(%x, 0.5f, 3);
      let %b = qnn.dequantize(%w, 0.25f, 0);
      let %c = nn.conv2d(%a, %b, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
      let %d = nn.relu(add(%c, qnn.dequantize(%y, 0.125f, -2)));
      (qnn.quantize(nn.max_pool2d(%d, pool_size=[2, 2]), 0.75f, 1, out_dtype="int8"), reshape(%d, newshape=[-1]))
    }""",
    "symbols": """
    def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(?, 4), float32], %i: Tensor[(?), int64]) {
      let %c = concatenate((%x, %y), axis=0);
      let %t = take(%c, %i, axis=0, mode="clip");
      (transpose(%t, axes=[1, 0]), reshape(%t, newshape=[-1, 2, 2]), split(%t, indices_or_sections=[1, 3], axis=1).1, shape_of(%c))
    }""",
    "groups": """
    def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
      %0 = fn (%p0: Tensor[(4), float32], %p1: Tensor[(4), float32], Primitive=1) { nn.relu(add(%p0, %p1)) };
      %1 = %0(%x, %y);
      %2 = fn (%q: Tensor[(4), float32], Compiler="other", Primitive=1, global_symbol="other_0") { exp(%q) };
      let %f = fn (%v: Tensor[(4), float32], Inline=1) { %v * %v };
      (%2(%1), %f(%1), %1)
    }""",
    "nested": """
    def @part(%t: ((float32, float32), bool)) -> float32 { if (%t.1) { %t.0.0 } else { %t.0.1 } }
    def @main(%p: (Tensor[(2), float32], (float32, float32)), %c: bool) {
      let %q = if (%c) { let %z = %p.1.0; let %w = %z + 1f; (%w, %z) } else { if (%p.1.0 < 2f) { %p.1 } else { (%p.1.1, 0f) } };
      let %s = (%q, %c);
      let %copy = %s;
      (@part(%copy), %p.0 * %q.0, (%p.0, ()))
    }""",
}
"""By what they are about."""

_TOKEN = re.compile(r"\s+|[@%]?[A-Za-z_][\w.]*|\d+(?:\.\d+)?(?:f|i\d+)?|=>|->|\"[^\"]*\"|.", re.DOTALL)

PASSES: dict[str, Callable[[], Any]] = {
    name: getattr(transform, name)
    for name in (
        *("CanonicalizeCast", "CanonicalizeOps", "CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense"),
        *("DeadCodeElimination", "DefuseOps", "DivToMul", "DynamicToStatic", "EliminateCommonSubexpr", "EtaExpand"),
        *("FakeQuantizationToInteger", "FastMath", "FlattenAtrousConv", "FoldConstant", "FoldExplicitPadding", "FoldScaleAxis", "FuseOps"),
        *("InferType", "Inline", "LambdaLift", "LazyGradientInit", "ManifestLifetimes", "PartialEvaluate", "RemoveUnusedFunctions"),
        *("SimplifyExpr", "SimplifyInference", "ToANormalForm", "ToBasicBlockNormalForm", "ToCPS", "ToGraphNormalForm"),
    )
}
PASSES |= {
    "SplitArgs 2": lambda: transform.SplitArgs(2),
    "CombineParallelConv2D 2": lambda: transform.CombineParallelConv2D(2),
    "CombineParallelDense 2": lambda: transform.CombineParallelDense(2),
    "CombineParallelDense 2, as a batch": lambda: transform.CombineParallelDense(2, to_batch=True),
    "ConvertLayout": lambda: transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]}),
    "DeadCodeElimination of calls": lambda: transform.DeadCodeElimination(inline_once=True),
    "normal form and back": lambda: transform.Sequential([transform.ToANormalForm(), transform.ToGraphNormalForm()]),
}


def names() -> list[str]:
    """Of programs, for the texts that differ from them; and of passes."""
    return [*PROGRAMS, *PASSES, "analysis", "gradients"]


def answers(name: str) -> Iterator[str]:
    if name in PROGRAMS:
        yield _outcome(PROGRAMS[name])
        for number in range(CHANGES):
            yield _outcome(_changed(PROGRAMS[name], np.random.default_rng([zlib.crc32(name.encode()), number])))
        return
    make = {"analysis": _analysed, "gradients": _derived}.get(name) or (lambda mod: PASSES[name]()(mod).astext())
    for program in PROGRAMS:
        yield f"{program}: {_said(lambda: make(parse_module(PROGRAMS[program])))}"  # noqa: B023 (called at once)


def _said(make: Callable[[], str]) -> str:
    try:
        with transform.PassContext(opt_level=4):
            return make()
    except (ValueError, TypeError, NeedsControl) as error:
        return f"{type(error).__name__}: {error}"


def _outcome(text: str) -> str:
    """The types of a program, its text as it is printed and read, and what it is lowered to."""
    typed = list[ast.RelayModule]()

    def printed() -> str:
        typed.append(infer_module(parse_module(text)))
        found = typed[0].astext()
        ast.assert_structural_equal(infer_module(parse_module(found)), typed[0])
        return found

    said = _said(printed)
    return f"{said}\n{_said(lambda: str(lower(typed[0])))}" if typed else said


def _changed(text: str, rng: np.random.Generator) -> str:
    """The text with a token left out, twice there, replaced by another one of its kind, or with a number that is one more."""
    tokens = _TOKEN.findall(text)
    places = [i for i, token in enumerate(tokens) if not token.isspace()]
    at, way = places[int(rng.integers(len(places)))], rng.random()
    token = tokens[at]
    if way < 0.15:
        tokens[at] = ""
    elif way < 0.25:
        tokens[at] = f"{token} {token}"
    elif way < 0.5 and token[0].isdigit():
        tokens[at] = re.sub(r"^\d+", lambda found: str(int(found[0]) + 1), token)
    else:
        alike = sorted({tokens[i] for i in places if _kind(tokens[i]) == _kind(token)} - {token}) or [token]
        tokens[at] = alike[int(rng.integers(len(alike)))]
    return "".join(tokens)


def _kind(token: str) -> str:
    return "number" if token[0].isdigit() else "name" if token[0].isalpha() else token[0] if token[0] in "@%" else "other"


def _analysed(mod: ast.RelayModule) -> str:
    typed = infer_module(mod)
    main = typed["main"]
    return "\n".join(
        [
            *(str(find(main)) for find in (analysis.all_vars, analysis.free_vars, analysis.bound_vars)),
            str([str(feature) for feature in sorted(analysis.detect_feature(typed), key=str)]),
            str(analysis.count_layers(main, ["nn.conv2d", "nn.dense"])),
            str(analysis.list_op_freqs(typed)),
            str(analysis.list_fake_quantized_op_freqs(typed)),
            _said(lambda: str(analysis.check_basic_block_normal_form(main))),
            _said(lambda: str(analysis.check_kind(main.checked_type, typed))),
            _said(lambda: str(analysis.get_total_mac_number(main))),
        ]
    )


def _derived(mod: ast.RelayModule) -> str:
    typed = infer_module(mod)
    return "\n".join(
        _said(lambda: infer_module(ast.RelayModule.from_expr(transform.gradient(typed["main"], typed, mode=mode))).astext())  # noqa: B023
        for mode in ("first_order", "higher_order")
    )
