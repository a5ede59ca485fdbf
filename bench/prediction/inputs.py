# Writes items.json, items.xml and words.txt into the folder that is named: what programs of the prediction's measurement read.
import json
import random
import sys

folder = sys.argv[1]
random.seed(1)
with open(folder + "/items.json", "w") as out:
    json.dump([{"id": i, "name": "name %d" % i, "tags": ["a%d" % (i % 7), "b%d" % (i % 11)],
                "x": {"y": i * 1.5, "z": [i, i + 1]}} for i in range(12000)], out)
with open(folder + "/items.xml", "w") as out:
    out.write("<r>" + "".join('<item id="%d"><name lang="en">name %d</name><v>%d</v><w><z a="1"/></w></item>'
                              % (i, i, i * 3) for i in range(12000)) + "</r>")
with open(folder + "/words.txt", "w") as out:
    for _ in range(25000):
        out.write(" ".join("w%d" % random.randrange(20000) for _ in range(12)) + "\n")
