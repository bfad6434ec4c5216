"""Models whose sizes are those of their data: of results of NonZero, which are joined, chosen by branches and carried by loops."""

import onnx

_MODELS = {
    "joined": "g (float[n] x, float[m] y) => (int64[1, k] r) { a = NonZero(x)  b = NonZero(y)  r = Concat<axis = 1>(a, b) }",
    "joined twice": """g (float[n] x) => (int64[1, k] r, int64[3, j] q) {
        a = NonZero(x)  r = Concat<axis = 1>(a, a)  q = Concat<axis = 0>(a, a, a) }""",
    "joined after a sum": """g (float[n] x, float[m] y) => (int64[1, k] r, int64[1, j] s) {
        a = NonZero(x)  c = Add(a, a)  b = NonZero(y)  d = Mul(b, b)  r = Concat<axis = 1>(c, d)  s = Concat<axis = 1>(r, c) }""",
    "branch": """g (bool c, float[n] x, float[m] y) => (int64[1, k] r, int64[1, j] q) {
        a = NonZero(x)
        r, q = If(c) <
            then_branch = t () => (int64[1, i] u, int64[1, k] v) { u = NonZero(y)  v = Add(a, a) },
            else_branch = e () => (int64[1, h] s, int64[1, l] w) { s = Identity(a)  w = NonZero(y) }> }""",
    "branch of parts": """g (bool c, float[n] x, float[m] y) => (float[k] r) {
        r = If(c) <
            then_branch = t () => (float[i] u) { u = Concat<axis = 0>(x, y) },
            else_branch = e () => (float[h] s) { s = Relu(y) }> }""",
    "loop": """g (int64 trips, float[n] x) => (int64[1, k] r) {
        go = Constant<value = bool {1}>()
        a = NonZero(x)
        r = Loop(trips, go, a) <body = b (int64 i, bool o, int64[1, h] p) => (bool s, int64[1, l] q) {
            s = Identity(o)  q = Concat<axis = 1>(p, a) }> }""",
    "loop of several": """g (int64 trips, float[n] x, float[m] y) => (int64[1, k] r, float[n] u, int64[1, j] q) {
        go = Constant<value = bool {1}>()
        a = NonZero(x)
        b = NonZero(y)
        r, u, q = Loop(trips, go, a, x, b) <
            body = l (int64 i, bool o, int64[1, h] p, float[n] v, int64[1, f] e) => (bool s, int64[1, d] z, float[n] w, int64[1, f] t) {
                s = Identity(o)  w = Tanh(v)  c = NonZero(v)  z = Concat<axis = 1>(p, c)  t = Identity(p) }> }""",
}
NAMES = tuple(_MODELS)


def model(name: str) -> onnx.ModelProto:
    """A model by its name."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {_MODELS[name]}')
