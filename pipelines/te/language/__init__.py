"""The tensor expression language behind `relayc.te`, and its translation to linalg on tensors.

`expressions`, `functions` and `reductions` define elements, `tensors` defines tensors; `validation` checks them; `indices`, `operands`,
`scalars` and `emission` translate them to linalg, `primfunc` builds functions and modules, `rules` rules of operators.
"""
