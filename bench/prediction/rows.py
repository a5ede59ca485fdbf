# Prints "NAME ALLOCATOR REAL PREDICTED WEIGHT" for each allocator in what `heapwise allocators --json` has written: times by that with
# the present one. What is real is the median over the rounds, each with the present allocator's run of the same round, in processor
# time (a machine that others use too lets runs wait); of programs with several threads by the clock.
import json
import statistics
import sys

name, path = sys.argv[1:]
runs = json.load(open(path))
present = next(run for run in runs if run["present"])
weights = [run["predicted"].get("weight") for run in runs if run["predicted"]]
weight = next((w for w in weights if w), None)
times = "times_s" if weight and weight["of"] == "operations" else "cpu_times_s"
for run in runs:
    if not run["rounds"] or not (run is present or run["predicted"]):
        continue
    real = statistics.median(one / now for one, now in zip(run[times], present[times]))
    predicted = 1 if run is present else 1 / run["predicted"]["speedup"]
    told = "%.1f (%.1f-%.1f)%s" % (weight["value"], weight["low"], weight["high"], "" if weight["from"] == "runs" else " rule") if weight else "-"
    print(name, run["allocator"], real, predicted, told, sep="\t")
