class _Device:
    def __init__(self, platform):
        self.platform = platform


class _Type:
    itemsize = 8

    def __str__(self):
        return "float64"


class ArrayImpl:
    shape, nbytes, dtype = (2, 5), 80, _Type()

    def __init__(self, platform="gpu", deleted=False):
        self._platform, self._deleted = platform, deleted

    def devices(self):
        return {_Device(self._platform)}

    def is_deleted(self):
        return self._deleted

    def unsafe_buffer_pointer(self):
        return 0x30000
