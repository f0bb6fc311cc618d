"""As much of PyTorch's interface as names of tensors need, with device memory that is not there."""

import contextlib

from . import _C, nn

float16 = "torch.float16"


class Storage:
    def __init__(self, start, size):
        self.start, self.size = start, size

    def nbytes(self):
        return self.size


class Tensor:
    is_cuda = True
    dtype = float16

    def __init__(self, start, shape, strides=None, storage=None, offset=0):
        self.shape = shape
        count, made = 1, []
        for side in reversed(shape):
            made.append(count)
            count *= side
        self._strides = strides or tuple(reversed(made))
        self._storage, self._offset = storage or Storage(start, 2 * count), offset

    def element_size(self):
        return 2

    def stride(self):
        return self._strides

    def storage_offset(self):
        return self._offset

    def untyped_storage(self):
        assert _C.quiet, "a mode of the program sees this"
        return self._storage

    def data_ptr(self):
        return self._storage.start + 2 * self._offset


class OnHost(Tensor):
    is_cuda = False


nn.Parameter = type("Parameter", (Tensor,), {})


def use(*tensors):
    """A function of the framework's own, whose variables are not the program's."""
    inner = tensors  # noqa: F841
    contextlib.nullcontext()
