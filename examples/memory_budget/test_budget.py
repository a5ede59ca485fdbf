"""What tests with a budget look like. Under `heapwise record`, with PYTHONMALLOC=malloc: then each object is a block."""


def squares(count):
    return [number * number for number in range(count)]


kept = []


def remember(count):
    kept.append(bytearray(count))


def test_squares(memory_budget):
    with memory_budget(leaked="16K", peak="8M", bytes="16M"):
        squares(100_000)


def test_remember(memory_budget):
    with memory_budget(leaked="16K"):
        remember(1 << 20)
