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


def test_remember_in_numbers(memory_totals):
    with memory_totals("remember") as totals:
        remember(1 << 20)
    assert abs(totals.live_bytes - (1 << 20)) <= 16 << 10  # Python's own objects come and go
    assert totals.peak_bytes >= totals.live_bytes
