"""Functions of blocks and loops as Python text, in the form of TVMScript: read (`reader`) and printed (`printer`).

    from relayc.tir import T

    @T.prim_func
    def main(A: T.Buffer((128, "n"), "float32"), B: T.Buffer((128,), "float32")):
        n = T.int64()
        for i, k in T.grid(128, n):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]

The text is never run as Python: expressions are evaluated one by one in place, statements build loops and blocks.
"""
