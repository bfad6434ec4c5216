"""A recurrent decoder whose number of steps depends on data, written as an ONNX Loop.

The exporters unroll such a loop or make sequences of it; neither is what other tools write.
"""

from __future__ import annotations

import onnx
import torch
from onnx import numpy_helper
from sample import Sample, Size
from torch import Tensor, nn

# The step counter is the loop's own; it goes on while a sequence wants another step.
GRAPH = """
<ir_version: 8, opset_import: ["" : {opset}]>
recurrent_decoder (float[batch, seq, {features}] memory, int64[batch] lengths)
    => (float[batch, steps, {outputs}] frames, float[batch, {hidden}] last)
<int64 zero = {{0}}, int64 one = {{1}}, int64[1] last_axis = {{-1}}, int64[1] middle_axis = {{1}},
 float no_value = {{0}}, float scale = {{{scale}}}, int64[1] hidden_extent = {{{hidden}}}, int64[1] frame_extent = {{{outputs}}}>
{{
    projected = MatMul(memory, keys)
    keys_of_memory = Transpose <perm = [0, 2, 1]> (projected)
    extent = Shape <start = 0, end = 1> (memory)
    state_shape = Concat <axis = 0> (extent, hidden_extent)
    frame_shape = Concat <axis = 0> (extent, frame_extent)
    no_state = ConstantOfShape (state_shape)
    no_frame = ConstantOfShape (frame_shape)
    longest = ReduceMax <keepdims = 0> (lengths)
    begins = Greater (longest, zero)
    ends = Unsqueeze (lengths, last_axis)
    last, last_cell, last_frame, by_step = Loop <body = step
        (int64 index, bool goes, float[batch, {hidden}] state, float[batch, {hidden}] cell, float[batch, {outputs}] before)
        => (bool goes_on, float[batch, {hidden}] new_state, float[batch, {hidden}] new_cell, float[batch, {outputs}] fed,
            float[batch, {outputs}] frame)
        {{
            entered = Gemm (before, enter_weight, enter_bias)
            bounded = Tanh (entered)
            asked = MatMul (state, queries)
            query = Unsqueeze (asked, middle_axis)
            products = MatMul (query, keys_of_memory)
            scores = Mul (products, scale)
            weights = Softmax <axis = -1> (scores)
            mixed = MatMul (weights, memory)
            context = Squeeze (mixed, middle_axis)
            joined = Concat <axis = 1> (bounded, context, state)
            gates = Gemm (joined, cell_weight, cell_bias)
            a, b, c, d = Split <axis = 1, num_outputs = 4> (gates)
            input = Sigmoid (a)
            forget = Sigmoid (b)
            value = Tanh (c)
            output = Sigmoid (d)
            kept = Mul (forget, cell)
            added = Mul (input, value)
            next_cell = Add (kept, added)
            shown = Tanh (next_cell)
            next_state = Mul (output, shown)
            found = Concat <axis = 1> (next_state, context)
            left = Gemm (found, leave_weight, leave_bias)
            active = Less (index, ends)
            new_state = Where (active, next_state, state)
            new_cell = Where (active, next_cell, cell)
            frame = Where (active, left, no_value)
            fed = Identity (frame)
            next = Add (index, one)
            wanted = Less (next, lengths)
            count = Cast <to = 7> (wanted)
            most = ReduceMax <keepdims = 0> (count)
            goes_on = Cast <to = 9> (most)
        }}> (, begins, no_state, no_state, no_frame)
    frames = Transpose <perm = [1, 0, 2]> (by_step)
}}
"""


class RecurrentDecoder(nn.Module):
    """An LSTM cell that reads a memory by attention and is fed its own last frame, as speech synthesis has it.

    Each sequence has its own number of frames; the loop ends with the longest one. Frames of a sequence that has ended are zero.
    """

    def __init__(self, features: int, outputs: int, entered: int, keys: int, hidden: int) -> None:
        super().__init__()
        self.features, self.outputs, self.hidden, self.scale = features, outputs, hidden, keys**-0.5
        self.enter = nn.Linear(outputs, entered)
        self.queries = nn.Linear(hidden, keys, bias=False)
        self.keys = nn.Linear(features, keys, bias=False)
        self.cell = nn.Linear(entered + features + hidden, 4 * hidden)
        self.leave = nn.Linear(hidden + features, outputs)

    def forward(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        batch = memory.shape[0]
        keys = self.keys(memory).transpose(1, 2)
        state = cell = torch.zeros(batch, self.hidden)
        frame = torch.zeros(batch, self.outputs)
        frames = [torch.zeros(0, batch, self.outputs)]
        for step in range(int(lengths.max())):
            query = self.queries(state).unsqueeze(1)
            context = (torch.softmax(query @ keys * self.scale, dim=-1) @ memory).squeeze(1)
            a, b, c, d = self.cell(torch.cat((torch.tanh(self.enter(frame)), context, state), dim=1)).chunk(4, dim=1)
            next_cell = torch.sigmoid(b) * cell + torch.sigmoid(a) * torch.tanh(c)
            next_state = torch.sigmoid(d) * torch.tanh(next_cell)
            left = self.leave(torch.cat((next_state, context), dim=1))
            active = (step < lengths).unsqueeze(1)
            state, cell = torch.where(active, next_state, state), torch.where(active, next_cell, cell)
            frame = torch.where(active, left, torch.zeros(()))
            frames.append(frame.unsqueeze(0))
        return torch.cat(frames).transpose(0, 1), state

    def written(self, opset: int) -> onnx.ModelProto:
        """The same as an ONNX model."""
        sizes = {"features": self.features, "outputs": self.outputs, "hidden": self.hidden, "scale": repr(self.scale)}
        model = onnx.parser.parse_model(GRAPH.format(opset=opset, **sizes))
        weights = {
            "enter_weight": self.enter.weight.T,
            "enter_bias": self.enter.bias,
            "queries": self.queries.weight.T,
            "keys": self.keys.weight.T,
            "cell_weight": self.cell.weight.T,
            "cell_bias": self.cell.bias,
            "leave_weight": self.leave.weight.T,
            "leave_bias": self.leave.bias,
        }
        model.graph.initializer.extend(
            numpy_helper.from_array(value.detach().contiguous().numpy(), name) for name, value in weights.items()
        )
        return model


def recurrent_decoder(size: Size) -> Sample:
    """The decoder with its attention; the full one has an LSTM of 512 units."""
    if size == "tiny":
        model = RecurrentDecoder(features=12, outputs=5, entered=8, keys=8, hidden=16)
    else:
        model = RecurrentDecoder(features=256, outputs=80, entered=128, keys=128, hidden=512)
    inputs = {"memory": torch.randn(2, 7, model.features), "lengths": torch.tensor([9, 4])}
    return Sample(model, inputs, ("frames", "last"))
