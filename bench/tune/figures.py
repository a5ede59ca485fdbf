"""How good is heapwise tune? Twenty programs: measures, and prints tables in Markdown.

    figures.py HEAPWISE FOLDER [--only NAME,NAME] STEP...

STEP is one of
  tune      heapwise tune with a budget of 60 s, its whole duration by the clock
  fresh     heapwise compare -n 20 of the program as it is with the winner, in new runs
  predict   the settings that heapwise record --mode allocator names, with their predicted gains, and heapwise compare
            -n 20 for each
  grid      all configurations of tune (also those that it left early), in GRID_ROUNDS interleaved rounds; for the
            programs of GRID, whose runs are short
  table     the tables
A step leaves a file for each program in FOLDER, and goes on with the next one if that exists.
"""
import glob
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

from programs import programs

BUDGET_S = 60
PAIRS = 20
GRID_ROUNDS = 10
GRID = ["lua", "perl", "python3", "mawk", "bash", "git", "dot", "php"]
GRID_FULL = 20  # the rounds of the grid that times are compared with


def say(text):
    print("tune: " + text, file=sys.stderr, flush=True)


class Figures:
    def __init__(self, heapwise, folder, only):
        self.heapwise, self.folder = heapwise, folder
        self.programs = [p for p in programs(os.path.join(folder, "inputs")) if not only or p[0] in only]

    def at(self, name, kind):
        return os.path.join(self.folder, "%s.%s" % (name, kind))

    def read(self, name, kind):
        try:
            with open(self.at(name, kind)) as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def write(self, name, kind, value):
        with open(self.at(name, kind) + ".new", "w") as file:
            json.dump(value, file)
        os.rename(self.at(name, kind) + ".new", self.at(name, kind))

    def heapwise_json(self, arguments, env, codes=(0,)):
        """Runs heapwise; (its JSON object, seconds)."""
        begin = time.monotonic()
        run = subprocess.run([self.heapwise] + arguments, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if run.returncode not in codes:
            say("failed (%d): %s: %s" % (run.returncode, " ".join(arguments)[:90], run.stderr.decode()[-300:]))
            return None, 0
        return json.loads(run.stdout), time.monotonic() - begin

    def compare(self, config, env, command):
        return self.heapwise_json(["compare", "-n", str(PAIRS), "--for=time", "--json", "-q", "--config-b=" + config, "--"]
                                  + command, env, (0, 1))[0]

    # ---- steps ----

    def tune(self, name, env, command):
        result, seconds = self.heapwise_json(
            ["tune", "--budget=%ds" % BUDGET_S, "--json", "-q", "-o", self.at(name, "conf"), "--"] + command, env)
        if result:
            result["seconds"] = seconds
            self.write(name, "tune", result)
            say("%s: %s, %s, %.0f s" % (name, result["result"], result["winner"], seconds))

    def fresh(self, name, env, command):
        tuned = self.read(name, "tune")
        if tuned and tuned["winner"]:
            result = self.compare(self.at(name, "conf"), env, command)
            if result:
                self.write(name, "fresh", result)

    def predict(self, name, env, command):
        profiles = self.at(name, "%p.hwprof")
        for old in glob.glob(profiles.replace("%p", "*")):
            os.unlink(old)
        subprocess.run([self.heapwise, "record", "-q", "--mode", "allocator", "-o", profiles, "--"] + command,
                       env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        chosen = None
        for profile in glob.glob(profiles.replace("%p", "*")):
            report, _ = self.heapwise_json(["report", "--json", profile], {})
            verdict = report and (report.get("allocator") or {}).get("verdict")
            if verdict and (not chosen or (verdict["seconds_in_operations"] or 0) > (chosen["seconds_in_operations"] or 0)):
                chosen = verdict
        if not chosen:
            return
        rows = []
        for cause in chosen["causes"]:
            config = setting_file(cause["setting"])
            if config:
                with open(self.at(name, "setting"), "w") as file:
                    file.write(config)
                measured = self.compare(self.at(name, "setting"), env, command)
                rows.append({"cause": cause["cause"], "setting": cause["setting"], "most": cause["gain_seconds"],
                             "least": cause["gain_least_seconds"], "bytes": cause["bytes"], "of": chosen["run_seconds"],
                             "measured": measured})
            elif cause["setting"]:
                rows.append({"cause": cause["cause"], "setting": cause["setting"], "most": cause["gain_seconds"],
                             "least": cause["gain_least_seconds"], "bytes": cause["bytes"], "of": chosen["run_seconds"],
                             "measured": None})
        self.write(name, "predict", {"verdict": chosen, "rows": rows})

    def grid(self, name, env, command):
        tuned = self.read(name, "tune")
        if name not in GRID or not tuned:
            return
        names = ["as it is"] + [c["configuration"] for c in tuned["configurations"] if c["state"] != "plain"]
        environments = [env] + [dict(e.split("=", 1) for e in c["environment"]) | env
                                for c in tuned["configurations"] if c["state"] != "plain"]
        times = [[] for _ in names]
        begin = time.monotonic()
        lot = random.Random(1)
        for _ in range(GRID_ROUNDS):
            for i in lot.sample(range(len(names)), len(names)):
                start = time.monotonic()
                subprocess.run(command, env={**os.environ, **environments[i]}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                times[i].append(time.monotonic() - start)
        self.write(name, "grid", {"names": names, "times": times, "seconds": time.monotonic() - begin})
        say("%s: grid of %d configurations, %.0f s" % (name, len(names), time.monotonic() - begin))

    # ---- tables ----

    def table(self):
        rows = [(name, new, self.read(name, "tune"), self.read(name, "fresh"), self.read(name, "grid"))
                for name, new, _, _ in self.programs]
        rows = [row for row in rows if row[2]]
        print("| program | a run, s | configurations | winner | gain found | gain in 20 fresh pairs | still | answer, s | grid, s |")
        print("| --- | ---: | ---: | --- | ---: | ---: | --- | ---: | ---: |")
        gains, kept, winners, shares, all_gains = [], 0, 0, [], []
        for name, new, tuned, fresh, grid in rows:
            run = plain_seconds(tuned, fresh, grid)
            count = len(tuned["configurations"])
            full = (grid["seconds"] / GRID_ROUNDS if grid else count * run) * GRID_FULL
            shares.append(tuned["seconds"] / full)
            best = next((c for c in tuned["configurations"] if c["configuration"] == tuned["winner"]), None)
            if fresh:
                wall = metric(fresh)
                still = "yes" if wall["high"] < 1 else "no"
                winners += 1
                kept += still == "yes"
                gains.append(1 - wall["ratio"])
            all_gains.append(1 - metric(fresh)["ratio"] if fresh else 0)
            print("| %s%s | %.2f | %d | %s | %s | %s | %s | %.0f | %.0f%s |" % (
                name, " *" if new else "", run, count - 1, tuned["winner"] or "none (%s)" % tuned["result"],
                interval(best["confirmed"]) if best else "-", interval(metric(fresh), "ratio") if fresh else "-",
                still if fresh else "-", tuned["seconds"], full, "" if grid else " c"))
        print()
        print("median gain, of all programs (0 without a winner): %.1f %%" % (100 * statistics.median(all_gains)))
        if gains:
            print("median gain, of the %d with a winner: %.1f %%" % (len(gains), 100 * statistics.median(gains)))
            print("still better in the fresh pairs: %d of %d" % (kept, winners))
        print("time to the answer, share of the grid: median %.2f (%.2f to %.2f)"
              % (statistics.median(shares), min(shares), max(shares)))
        self.table_of_grids(rows)
        self.table_of_predictions()

    def table_of_grids(self, rows):
        print("\n| program | best of the grid | its gain | gain of tune's winner there | its place |")
        print("| --- | --- | ---: | ---: | ---: |")
        for name, _, tuned, _, grid in rows:
            if not grid:
                continue
            ratios = [statistics.median(math.log(t / p) for t, p in zip(times, grid["times"][0]))
                      for times in grid["times"]]
            order = sorted(range(len(ratios)), key=lambda i: ratios[i])
            at = grid["names"].index(tuned["winner"] or "as it is")
            print("| %s | %s | %s | %s | %d of %d |" % (
                name, grid["names"][order[0]], percent(math.exp(ratios[order[0]])), percent(math.exp(ratios[at])),
                order.index(at) + 1, len(order)))

    def table_of_predictions(self):
        print("\n| program | cause | setting | predicted gain | measured gain |")
        print("| --- | --- | --- | ---: | ---: |")
        for name, _, _, _ in self.programs:
            for row in (self.read(name, "predict") or {"rows": []})["rows"]:
                most = 100 * row["most"] / row["of"] if row["most"] is not None else None
                least = 100 * row["least"] / row["of"] if row["least"] is not None else None
                print("| %s | `%s` | `%s` | %s | %s |" % (
                    name, row["cause"], row["setting"],
                    "-" if most is None else "at most %.1f %%" % most if least is None else
                    "%.1f to %.1f %%" % (least, most),
                    interval(metric(row["measured"]), "ratio") if row["measured"] else "not measured"))


def setting_file(setting):
    """A file for --config-b, of glibc's settings; None: of another allocator."""
    if not setting or not setting.startswith("GLIBC_TUNABLES="):
        return None
    pairs = [one.split("=", 1) for one in setting.split("=", 1)[1].split(":")]
    if not all(name.startswith("glibc.malloc.") for name, _ in pairs):
        return None
    return "allocator = glibc\n" + "".join("%s = %s\n" % (name[len("glibc.malloc."):], value) for name, value in pairs)


def metric(compared, name="wall_time"):
    return next(m for m in compared["metrics"] if m["name"] == name)


def plain_seconds(tuned, fresh, grid):
    if grid:
        return statistics.median(grid["times"][0])
    if fresh:
        return metric(fresh)["a"]
    return tuned["seconds"] / max(1, tuned["runs"])


def percent(ratio):
    return "%.1f %%" % (100 * (1 - ratio))


def interval(ratio, key="value"):
    return "%.1f %% (%.1f to %.1f)" % tuple(100 * (1 - ratio[k]) for k in (key, "high", "low"))


def main():
    arguments = sys.argv[1:]
    heapwise, folder = arguments[:2]
    arguments = arguments[2:]
    only = arguments[1].split(",") if arguments[:1] == ["--only"] else None
    steps = arguments[2:] if only else arguments
    figures = Figures(heapwise, folder, only)
    for step in steps:
        if step == "table":
            figures.table()
            continue
        for name, _, env, command in figures.programs:
            if not shutil.which(command[0]):
                say("skipped: %s: there is no %s" % (name, command[0]))
            elif not os.path.exists(figures.at(name, step)):
                getattr(figures, step)(name, env, command)


main()
