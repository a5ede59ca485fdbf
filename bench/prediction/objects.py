# Builds, sorts and drops objects and strings; to be run with PYTHONMALLOC=malloc, so that each is a block of its own.
import sys

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6


class Item:
    def __init__(self, number):
        self.name = "item %d" % number
        self.links = [number, number + 1]
        self.tags = {"n": number}


kept = []
for round in range(rounds):
    items = [Item(i) for i in range(20000)]
    items.sort(key=lambda item: item.name)
    kept.append([item.name.upper() for item in items[::10]])
    index = {item.name: item for item in items}
    print(round, sum(len(item.links) for item in index.values()))
