"""How models come in: a package for each format, and what they share.

`registry` says which frontend takes a model; `converter` and `steps` are what converters of any format build modules with, and `common` has
what operators of several formats share; `onnx` imports ONNX models, `pytorch` those of torch.export, `stablehlo` functions of JAX,
`keras` models of Keras by one of these two, and `relay` is for programs written in Python. `gguf` reads weights for such
programs.
"""

from relayc.frontend.registry import Frontend, accepted, files_of, import_model, register_frontend, remove_frontend, suffixes

__all__ = ["Frontend", "accepted", "files_of", "import_model", "register_frontend", "remove_frontend", "suffixes"]
