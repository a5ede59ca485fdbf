# Writes into the folder that is named what the programs of bench/tune read. The same on every machine.
import json
import os
import random
import subprocess
import sys

folder = sys.argv[1]
random.seed(20)


def write(name, text):
    with open(os.path.join(folder, name), "w") as out:
        out.write(text)


items = [{"id": i, "name": "name %d" % i, "tags": ["a%d" % (i % 7), "b%d" % (i % 11)],
          "x": {"y": i * 1.5, "z": [i, i + 1]}} for i in range(25000)]
write("items.json", json.dumps(items))
write("items.xml", "<r>" + "".join(
    '<item id="%d"><name lang="en">name %d</name><v>%d</v><w><z a="1"/></w></item>' % (i, i, i * 3)
    for i in range(90000)) + "</r>")
words = "".join(" ".join("w%d" % random.randrange(20000) for _ in range(12)) + "\n" for _ in range(40000))
write("words.txt", words)
write("words-few.txt", words[:len(words) // 3])
write("words-many.txt", words * 4)

write("rows.sql", """
create table t(a integer primary key, b text, c text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 110000)
  insert into t select i, printf('name %d', i * 7919 % 110000), printf('%x', i * 31) from n;
create index tb on t(b);
update t set c = c || 'x' where a % 3 = 0;
select count(*), max(b), sum(length(c)) from t where b > 'name 3';
select substr(b, 6, 2) k, group_concat(c) from t group by k order by length(group_concat(c)) desc limit 3;
delete from t where a % 5 = 0;
select count(*) from t x join t y on x.b = y.b;
""")

write("table.cpp", r"""
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct row {
    std::map<std::string, std::vector<int>> cells;
    std::unordered_map<int, std::shared_ptr<row<N - 1>>> below;
    int add(const std::string &key, int value)
    {
        cells[key].push_back(value);
        auto &next = below[value];
        if (!next)
            next = std::make_shared<row<N - 1>>();
        return next->add(key + "x", value + N) + (int)cells.size();
    }
};
template <> struct row<0> {
    int add(const std::string &, int value) { return value; }
};
int sum(const std::vector<std::string> &keys)
{
    row<3> top;
    int total = 0;
    for (auto &key : keys)
        total += top.add(key, (int)key.size());
    return total;
}
""")

write("objects.js", """
const kept = new Map();
for (let round = 0; round < 4; round++)
    for (let i = 0; i < 60000; i++)
        kept.set('key ' + i, { round, list: [i, i + 1, String(i)], next: kept.get('key ' + (i - 1)) ? i : null });
const text = JSON.stringify([...kept.values()]);
const back = JSON.parse(text).sort((a, b) => (a.list[2] < b.list[2] ? -1 : 1));
console.log(text.length, back.length, back[100].list[2], Buffer.from(text).toString('base64').length);
""")

write("words.rb", """
counts = Hash.new { |h, k| h[k] = [] }
File.foreach(ARGV[0]).with_index { |line, n| line.split.each { |w| counts[w] << "#{n}:#{w.size}" } }
puts counts.sort_by { |w, l| [-l.size, w] }.first(20).map { |w, l| w + " " + l.join(",").sum.to_s }
""")

write("lists.sh", """
declare -A seen
list=()
for ((i = 0; i < 4000; i++)); do
    key="key $((i * 7919 % 1009))"
    seen[$key]+=" $i"
    list+=("${key/key/item} ${#seen[$key]}")
done
text="${list[*]}"
text="${text//item/}"
echo "${#list[@]} ${#seen[@]} ${#text}"
for key in "key 1" "key 2" "key 3"; do echo "${seen[$key]}"; done
""")

edges = "".join("  n%d -> n%d;\n" % (random.randrange(i), i) for i in range(1, 1000))
edges += "".join("  n%d -> n%d;\n" % tuple(sorted(random.sample(range(1000), 2))) for _ in range(120))
write("graph.dot", "digraph g {\n" + edges + "}\n")

page = "/Times-Roman findfont 9 scalefont setfont\n"
page += "".join("%d %d moveto (%s) show\n" % (40 + i % 4 * 130, 30 + i // 4 * 11,
                                             " ".join("w%d" % random.randrange(900) for _ in range(4)))
                for i in range(270))
page += "".join("newpath %d %d moveto %d %d %d %d %d %d curveto %.2f setgray stroke\n"
                % (*(random.randrange(600) for _ in range(8)), random.random()) for _ in range(500))
write("pages.ps", "%!PS\n" + (page + "showpage\n") * 8)

write("words.php", """<?php
$counts = [];
foreach (file($argv[1]) as $n => $line)
    foreach (explode(' ', trim($line)) as $word)
        $counts[$word][] = $n . ':' . strlen($word);
uksort($counts, fn($a, $b) => count($counts[$b]) <=> count($counts[$a]) ?: strcmp($a, $b));
foreach (array_slice($counts, 0, 20) as $word => $list)
    echo $word, ' ', md5(implode(',', $list)), "\\n";
echo strlen(serialize($counts)), "\\n";
""")

write("words.tcl", """
set file [open [lindex $argv 0]]
set number 0
while {[gets $file line] >= 0} {
    incr number
    foreach word [split $line] { dict lappend counts $word "$number:[string length $word]" }
}
set sorted [lsort -stride 2 $counts]
puts "[dict size $counts] [string length $sorted] [lrange $sorted 0 5]"
""")

holes = 8
lines = ["(declare-const p%d_%d Bool)" % (i, j) for i in range(holes + 1) for j in range(holes)]
lines += ["(assert (or %s))" % " ".join("p%d_%d" % (i, j) for j in range(holes)) for i in range(holes + 1)]
lines += ["(assert (or (not p%d_%d) (not p%d_%d)))" % (i, j, k, j)
          for j in range(holes) for i in range(holes + 1) for k in range(i)]
lines += ["(declare-const x%d Int)" % i for i in range(60)]
lines += ["(assert (< (+ x%d %d) (+ x%d x%d)))" % (i, random.randrange(9), (i + 1) % 60, random.randrange(60))
          for i in range(60)]
write("holes.smt2", "\n".join(lines) + "\n(check-sat)\n")

repository = os.path.join(folder, "history.git")
if not os.path.exists(repository):
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repository], check=True)
    files = [[("line %d of file %d" % (i, f)) for i in range(300)] for f in range(40)]
    stream = []
    for commit in range(600):
        stream.append("commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata 3\nC%02d"
                      % (1600000000 + commit * 60, commit % 100))
        for f in random.sample(range(40), 4 if commit else 40):
            for _ in range(6):
                files[f][random.randrange(300)] = "changed in %d: %d" % (commit, random.randrange(10 ** 9))
            text = "\n".join(files[f]) + "\n"
            stream.append("M 100644 inline src/file%d.txt\ndata %d\n%s" % (f, len(text), text))
    subprocess.run(["git", "-C", repository, "fast-import", "--quiet"], input=("\n".join(stream) + "\n").encode(),
                   check=True)
