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
        return self.heapwise_json(["compare", "-n", str(PAIRS), "--for=time", "--json", "-q",
                                   "--config-b=" + config, "--"] + command, env, (0, 1))[0]

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
            if verdict and (not chosen or operations_s(verdict) > operations_s(chosen)):
                chosen = verdict
        if not chosen:
            return
        rows = []
        for cause in chosen["causes"]:
            config = setting_file(cause["setting"])
            if not cause["setting"]:
                continue
            if config:
                with open(self.at(name, "setting"), "w") as file:
                    file.write(config)
            rows.append({"cause": cause["cause"], "setting": cause["setting"], "most": cause["gain_seconds"],
                         "least": cause["gain_least_seconds"], "bytes": cause["bytes"], "of": chosen["run_seconds"],
                         "measured": config and self.compare(self.at(name, "setting"), env, command)})
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
        rows = [Row(self, name, new) for name, new, _, _ in self.programs if self.read(name, "tune")]
        print("| program | a run, s | tried | winner | gain found | gain in %d fresh pairs | answer, s | grid, s |"
              % PAIRS)
        print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
        for row in rows:
            print("| %s%s | %.2f | %d | %s | %s | %s | %.0f | %.0f%s |" % (
                row.name, "\\*" if row.new else "", row.run_s, len(row.tuned["configurations"]) - 1,
                row.tuned["winner"] or "none", interval(row.best["confirmed"]) if row.best else "-",
                interval(metric(row.fresh), "ratio") if row.fresh else "-", row.tuned["seconds"], row.grid_s,
                "" if row.grid else " c"))
        lists = {"all": rows, "known": [r for r in rows if not r.new], "new": [r for r in rows if r.new]}
        for title, some in lists.items():
            winners = [r for r in some if r.fresh]
            print("\n%s: %d programs, %d winners, %d of them better in fresh pairs (%s not)" % (
                title, len(some), len(winners), sum(r.kept for r in winners),
                ", ".join(r.name for r in winners if not r.kept) or "none"))
            print("  median gain in fresh pairs: %.1f %% of those with a winner, %.1f %% of all" % (
                100 * median([r.gain for r in winners]), 100 * median([r.gain for r in some])))
            shares = [r.tuned["seconds"] / r.grid_s for r in some]
            print("  time to the answer, share of the grid: median %.2f (%.2f to %.2f)"
                  % (median(shares), min(shares), max(shares)))
        self.table_of_grids(rows)
        self.table_of_predictions()

    def table_of_grids(self, rows):
        print("\n| program | best of the grid | its gain | gain of tune's winner there | its place |")
        print("| --- | --- | ---: | ---: | ---: |")
        for row in rows:
            if not row.grid:
                continue
            ratios = {name: median([math.log(t / p) for t, p in zip(times, row.grid["as it is"])])
                      for name, times in row.grid.items()}
            order = sorted(ratios, key=ratios.get)
            mine = row.tuned["winner"] or "as it is"
            print("| %s | %s | %s | %s | %s of %d |" % (
                row.name, order[0], percent(math.exp(ratios[order[0]])),
                percent(math.exp(ratios[mine])) if mine in ratios else "-",
                order.index(mine) + 1 if mine in ratios else "-", len(order)))

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


def operations_s(verdict):
    return verdict["seconds_in_operations"] or 0


def metric(compared, name="wall_time"):
    return next(m for m in compared["metrics"] if m["name"] == name)


class Row:
    """What is known of one program."""

    def __init__(self, figures, name, new):
        self.name, self.new = name, new
        self.tuned, self.fresh = figures.read(name, "tune"), figures.read(name, "fresh")
        grid = figures.read(name, "grid")
        excluded = {c["configuration"] for c in self.tuned["configurations"] if c["state"] == "excluded"}
        self.grid = grid and {n: t for n, t in zip(grid["names"], grid["times"]) if n not in excluded}
        self.best = next((c for c in self.tuned["configurations"] if c["configuration"] == self.tuned["winner"]), None)
        if self.grid:
            self.run_s = median(self.grid["as it is"])
            self.grid_s = sum(map(sum, self.grid.values())) / GRID_ROUNDS * GRID_FULL
        else:
            self.run_s = metric(self.fresh)["a"] if self.fresh else self.tuned["seconds"] / max(1, self.tuned["runs"])
            self.grid_s = (len(self.tuned["configurations"]) - len(excluded)) * self.run_s * GRID_FULL
        self.kept = bool(self.fresh) and metric(self.fresh)["high"] < 1
        self.gain = 1 - metric(self.fresh)["ratio"] if self.fresh else 0


def median(values):
    return statistics.median(values) if values else 0


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
