"""Writes a graph as ONNX: one self-contained file of float32 operations that every runtime has (opset 17)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from td3.errors import ConfigError
from td3.export.graph import (
    Convolution,
    Graph,
    Input,
    Join,
    LayerNorm,
    Linear,
    Normalise,
    Op,
    ReadImage,
    ReadNumbers,
    Relu,
    Tanh,
    Unscale,
)
from td3.export.naming import as_json
from td3.version import VERSION

OPSET, IR_VERSION = 17, 8  # LayerNormalization is of 17; onnxruntime 1.13 and newer read both


def write_onnx(graph: Graph) -> bytes:
    """Returns the bytes of an ONNX model; the same graph gives the same bytes."""
    try:
        import onnx
    except ImportError:
        raise ConfigError("An .onnx file needs onnx, which is not installed: pip install onnx") from None
    writer = _Writer(onnx.helper, onnx.numpy_helper, onnx.TensorProto)
    inputs = [writer.input(one) for one in graph.used_inputs]
    for number, op in enumerate(graph.ops):
        writer.add(number, op)
    action = graph.action
    kind = onnx.TensorProto.DOUBLE if action.dtype == "float64" else onnx.TensorProto.FLOAT
    output = onnx.helper.make_tensor_value_info("action", kind, ["batch", *action.shape])
    body = onnx.helper.make_graph(writer.nodes, graph.name, inputs, [output], writer.constants)
    model = onnx.helper.make_model(
        body,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="td3",
        producer_version=VERSION,
    )
    onnx.helper.set_model_props(model, {key: as_json(value) for key, value in graph.about.items()})
    onnx.checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString(deterministic=True)
    return data


class _Writer:
    """Collects the nodes and constants of a graph."""

    def __init__(self, helper: Any, numpy_helper: Any, kinds: Any) -> None:
        self.helper, self.numpy_helper, self.kinds = helper, numpy_helper, kinds
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.shapes: dict[str, tuple[int, ...]] = {}  # of the values, without the batch

    def input(self, one: Input) -> Any:
        """Makes an input with a batch dimension in front."""
        kinds = {"image": self.kinds.UINT8, "category": self.kinds.INT64, "vector": self.kinds.FLOAT}
        return self.helper.make_tensor_value_info(one.name, kinds[one.kind], ["batch", *one.stacked_shape])

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """Adds an array, and returns its name."""
        name = f"constant_{len(self.constants)}"
        array: NDArray[Any] = np.array(value, dtype)
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *takes: str, **attributes: Any) -> str:
        """Adds a node, and returns the name of what it makes."""
        name = f"node_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, takes, [name], name=name, **attributes))
        return name

    def add(self, number: int, op: Op) -> None:
        """Adds the nodes of one operation; the last of them gets the name of its value."""
        made = self.made_by(op, [f"value_{taken}" for taken in op.takes])
        self.shapes[f"value_{number}"] = op.shape
        name = "action" if isinstance(op, Unscale) else f"value_{number}"
        if self.nodes and self.nodes[-1].output[0] == made:
            self.nodes[-1].output[0] = name
        else:
            self.nodes.append(self.helper.make_node("Identity", [made], [name], name=name))

    def made_by(self, op: Op, taken: list[str]) -> str:
        """Adds the nodes of one operation, and returns the name of what they make."""
        match op:
            case ReadNumbers():
                return self._numbers(op)
            case ReadImage():
                return self._image(op)
            case Normalise():
                return self._normalised(op, taken[0])
            case Join():
                flat = [self._flat(name) for name in taken]
                return flat[0] if len(flat) == 1 else self.node("Concat", *flat, axis=1)
            case Linear():
                weight, bias = self.constant(op.weight), self.constant(op.bias)
                return self.node("Gemm", self._flat(taken[0]), weight, bias, transB=1)
            case Convolution():
                weight, bias = self.constant(op.weight), self.constant(op.bias)
                sides = {"strides": [op.stride] * 2, "pads": [op.padding] * 4, "kernel_shape": op.weight.shape[2:]}
                return self.node("Conv", taken[0], weight, bias, **sides)
            case LayerNorm():
                weight, bias = self.constant(op.weight), self.constant(op.bias)
                return self.node("LayerNormalization", taken[0], weight, bias, axis=-1, epsilon=op.epsilon)
            case Relu():
                return self.node("Relu", taken[0])
            case Tanh():
                return self.node("Tanh", taken[0])
            case Unscale():
                return self._unscaled(op, taken[0])
        raise TypeError(type(op).__name__)

    def _reshaped(self, name: str, *shape: int) -> str:
        """Reshapes each row of the batch."""
        return self.node("Reshape", name, self.constant([0, *shape], np.int64))

    def _flat(self, name: str) -> str:
        """Makes a vector of each row of the batch."""
        return name if len(self.shapes[name]) == 1 else self._reshaped(name, -1)

    def _numbers(self, op: ReadNumbers) -> str:
        """Joins inputs to (batch, history, numbers)."""
        parts = []
        for one in op.inputs:
            steps = self._reshaped(one.name, one.stack, one.size)
            if not one.categories:
                parts.append(steps)
            for entry, (first, count) in enumerate(one.categories):
                value = self.node("Gather", steps, self.constant([entry], np.int64), axis=2)
                known = self.constant(np.arange(first, first + count), np.int64)
                parts.append(self.node("Cast", self.node("Equal", value, known), to=self.kinds.FLOAT))
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=2)

    def _image(self, op: ReadImage) -> str:
        """Scales bytes, and puts the channels first."""
        one = op.input
        pixels = self.node("Cast", one.name, to=self.kinds.FLOAT)
        pixels = self.node("Sub", self.node("Div", pixels, self.constant(255.0)), self.constant(0.5))
        # By their strides, the largest first, the four axes stand as the environment has them.
        order = sorted(range(4), key=lambda axis: (one.planes[axis] > 1, -one.strides[axis]))
        pixels = self._reshaped(pixels, one.stack, *(one.planes[axis] for axis in order))
        axes = [0, 1, *(2 + order.index(axis) for axis in range(4))]
        if axes != sorted(axes):
            pixels = self.node("Transpose", pixels, perm=axes)
        return self._reshaped(pixels, *op.shape)

    def _normalised(self, op: Normalise, name: str) -> str:
        """Subtracts the mean in two parts: one float32 would lose what is small beside a large mean."""
        mean = op.mean.astype(np.float32)
        rest = op.mean - mean.astype(np.float64)
        centred = self.node("Sub", self.node("Sub", name, self.constant(mean)), self.constant(rest))
        scaled = self.node("Mul", centred, self.constant(op.scale))
        return self.node("Clip", scaled, self.constant(-op.clip), self.constant(op.clip))

    def _unscaled(self, op: Unscale, name: str) -> str:
        """Maps [−1, 1] to the environment's units; float32 adds the centre in two parts, the large one last."""
        if not np.array_equal(op.source, np.arange(len(op.source))):
            name = self.node("Gather", name, self.constant(op.source, np.int64), axis=1)
        if op.dtype == "float64":
            wide = self.node("Cast", name, to=self.kinds.DOUBLE)
            scaled = self.node("Mul", wide, self.constant(op.half, np.float64))
            moved = self.node("Add", scaled, self.constant(op.centre, np.float64))
        else:
            centre = op.centre.astype(np.float32)
            rest = op.centre - centre.astype(np.float64)
            moved = self.node("Mul", name, self.constant(op.half))
            for part in (rest, centre):
                moved = self.node("Add", moved, self.constant(part)) if part.any() else moved
        low, high = (self.constant(bound, op.dtype) for bound in (op.low, op.high))
        inside = self.node("Min", self.node("Max", moved, low), high)
        return inside if len(op.shape) == 1 else self._reshaped(inside, *op.shape)
