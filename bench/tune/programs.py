# The programs of bench/tune. The list was written before the first run. The settings, the race and the predictions of
# tune were never tried with those of the second list; those of the first one served for trials while it was built.
import os

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))


def programs(folder):
    """(name, of the second list or not, variables, command) of each program, with its inputs in FOLDER."""
    at = lambda name: os.path.join(folder, name)
    known = [
        ("lua", {}, ["lua5.4", root + "/bench/lua/binary_trees.lua", "13"]),
        ("sqlite3", {}, ["sqlite3", ":memory:", ".read " + at("rows.sql")]),
        ("perl", {}, ["perl", root + "/examples/visitors.pl", "50000"]),
        ("python3", {"PYTHONMALLOC": "malloc"},
         ["/usr/bin/python3", root + "/bench/prediction/objects.py", "4"]),
        ("jq", {}, ["jq", "-c", 'map({(.name): .x, t: (.tags | join(","))}) | group_by(.t) | length',
                    at("items.json")]),
        ("xmllint", {}, ["xmllint", "--xpath", "count(//item[@id mod 7 = 0]/w)", at("items.xml")]),
        ("clang++", {}, ["clang++-14", "-O1", "-S", "-o", "-", at("table.cpp")]),
        ("node", {}, ["node", at("objects.js")]),
        ("mawk", {}, ["mawk", "{ for (i = 1; i <= NF; i++) { c[$i]++; l[$i] = l[$i] \" \" NR } } "
                      "END { for (k in l) n += split(l[k], a, \" \"); print n }", at("words.txt")]),
        ("sort", {"LC_ALL": "C.UTF-8"}, ["sort", "-k", "3,3", "-k", "5,5", at("words-many.txt")]),
    ]
    new = [
        ("ruby", {}, ["ruby", at("words.rb"), at("words-few.txt")]),
        ("bash", {}, ["bash", at("lists.sh")]),
        ("git", {}, ["git", "-C", at("history.git"), "log", "-p", "--stat"]),
        ("g++", {}, ["g++", "-O0", "-S", "-o", "-", at("table.cpp")]),
        ("dot", {}, ["dot", "-Tplain", at("graph.dot")]),
        ("gs", {}, ["gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=ppmraw", "-r72", "-sOutputFile=-", at("pages.ps")]),
        ("php", {}, ["php", at("words.php"), at("words.txt")]),
        ("tclsh", {}, ["tclsh", at("words.tcl"), at("words-few.txt")]),
        ("z3", {}, ["z3", at("holes.smt2")]),
        ("zstd", {}, ["zstd", "-q", "-T2", "-15", "-c", at("items.json")]),
    ]
    return [(name, False, env, command) for name, env, command in known] + \
           [(name, True, env, command) for name, env, command in new]
