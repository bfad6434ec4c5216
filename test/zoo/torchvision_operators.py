"""Lets torchvision be imported beside a torch without CUDA, which its compiled operators do not load into.

What the import asks for are the declarations; the zoo calls none of these operators. To be imported before torchvision is.
"""

import torch

_ROI = "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned)"
_DECLARATIONS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align{_ROI} -> Tensor",
    f"qroi_align{_ROI} -> Tensor",
)

if torch.version.cuda is None:
    library = torch.library.Library("torchvision", "DEF")
    for _declaration in _DECLARATIONS:
        library.define(_declaration)

import torchvision  # noqa: E402, F401  # it asks for these operators
