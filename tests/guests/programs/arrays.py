"""Matrices in several processes, forked and spawned, and threads that allocate."""
import multiprocessing
import threading

import numpy


def product(n):
    a = numpy.arange(n * n, dtype=numpy.int64).reshape(n, n) % 97
    b = numpy.linalg.solve(numpy.eye(n) * 3.0, numpy.ones(n))
    return int((a @ a).sum() % 1000003), round(float(b.sum()), 6), "x" * (n % 7)


def fill(results, i):
    parts = [numpy.full(k, i) for k in range(1, 400)]
    results[i] = int(sum(p.sum() for p in parts))


def main():
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(product, range(20, 60, 4)))
    results = {}
    threads = [threading.Thread(target=fill, args=(results, i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(results.items()))
    queue = multiprocessing.Queue()
    child = multiprocessing.Process(target=queue.put, args=(numpy.arange(10000),))
    child.start()
    print(queue.get().sum())
    child.join()
    print(child.exitcode)


if __name__ == "__main__":
    main()
