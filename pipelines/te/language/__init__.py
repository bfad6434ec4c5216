"""The tensor expression language behind `relayc.te`: what people write, and how it becomes linalg on tensors.

`expressions`, `functions` and `reductions` are what an element is made of, `tensors` what makes tensors; `validation` checks what was
written; `indices`, `operands`, `scalars` and `emission` make linalg of it, `primfunc` functions and modules, `rules` operators' rules.
"""
