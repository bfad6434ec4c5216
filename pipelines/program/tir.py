"""The complete module of the tir stage: the IR with the runtime's metadata."""

from relayc.dialects.discardable import USES_TILES
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.program.calls import emit_calls
from relayc.pipelines.program.components import functions_of
from relayc.pipelines.program.infos import kernel_infos, parameter_infos, parameters_of, params_bytes, program_infos
from relayc.pipelines.program.parameters import Parameter


class TirModule(IRModule):
    """A module in the tir stage, with the runtime's metadata.

    Attributes:
      programs, kernels, parameters: as in the runtime's Artifact.
      layout: placement of every parameter in the parameter blob; `parameters.Blob` writes them.
      params_bytes: size of the parameter blob.
      uses_tiles: whether a kernel has operations on tile registers.
    """

    def __init__(self, mod: IRModule) -> None:
        """Reads a module whose memory is planned. Raises RelayError if it is not."""
        super().__init__(mod.module)
        self.kernels = kernel_infos(mod.module)
        self.programs = program_infos(mod.module, self.kernels)
        self.params_bytes = params_bytes(mod.module)
        self.layout: list[Parameter] = parameters_of(mod.module, mod.params)
        self.parameters = parameter_infos(self.layout, self.programs)
        self.uses_tiles = any(USES_TILES.on(f) for f in functions_of(mod.module).values())

    def take_layout(self) -> list[Parameter]:
        """Transfers ownership of `layout`, and with it the arrays."""
        layout, self.layout = self.layout, []
        return layout


@module_pass(opt_level=0, name="EmitCalls", stage="tir")
def complete(mod: IRModule, ctx: PassContext) -> TirModule:
    """Branches and loops of programs become blocks, and calls that can fail are checked (pipelines.program.calls).

    Collects the runtime's metadata of the module, whose memory is planned, first.
    """
    found = TirModule(mod)
    emit_calls(mod.module)
    return found
