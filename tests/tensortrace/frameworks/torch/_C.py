quiet = 0


class DisableTorchFunction:
    def __enter__(self):
        global quiet
        quiet += 1

    def __exit__(self, *_):
        global quiet
        quiet -= 1
