// check.mjs FORMAT FILE REPORT [KEY]: reads FILE with a reader of that format which is not Heapwise's, and compares it
// with REPORT, the report in JSON of the same profile. Prints what it has compared; throws where something differs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import vm from "node:vm";
import { byStack, readReport, visible } from "./report.mjs";
import { readInSpeedscope } from "./speedscope_page.mjs";

const [format, file, reportPath, key] = process.argv.slice(2);
const { report, contexts } = readReport(reportPath);
const require = createRequire(import.meta.url);
const keys = Object.keys(contexts[0]?.values ?? {}).filter((name) => contexts[0].values[name] !== null);

function assertSameSums(what, found, expected) {
  for (const [stack, value] of expected) assert.equal(found.get(stack), value, `${what} of ${stack}`);
  assert.equal(found.size, expected.size, `${what}: stacks`);
}

function add(sums, stack, value) {
  const name = JSON.stringify(stack);
  if (value) sums.set(name, (sums.get(name) ?? 0) + value);
}

const names = {
  peak: "peak_space", "peak-count": "peak_objects", bytes: "alloc_space", count: "alloc_objects",
  leaked: "inuse_space", "live-count": "inuse_objects", frees: "freed_objects", temporary: "temporary_objects",
  realloc: "reallocations", "total-lifetime": "lifetime", pools: "pool_space", accesses: "accesses", reads: "reads",
  writes: "writes", untouched: "untouched_space", "never-accessed": "never_accessed_objects",
  "never-read": "never_read_objects", "shared-granules": "shared_granules",
};

// As a page shows it.
const shown = (name) => name.replace(/\s+/g, " ").trim();

// speedscope's own page shows the profile of KEY first, and for each function what it allocated itself, in three digits.
async function inItsPage(title) {
  const seen = await readInSpeedscope(file);
  if (!seen) return ", without its page: there is no browser";
  assert.equal(seen.profile.replace(" (estimated)", ""), title);
  const expected = new Map();
  for (const { stack, values } of contexts)
    if (values[key]) expected.set(shown(stack.at(-1)), (expected.get(shown(stack.at(-1))) ?? 0) + values[key]);
  const found = new Map();
  for (const { name, self } of seen.rows) found.set(shown(name), (found.get(shown(name)) ?? 0) + self);
  const greatest = [...expected].sort((a, b) => b[1] - a[1]).slice(0, 10);
  assert.ok(greatest.length);
  for (const [name, value] of greatest)
    assert.ok(Math.abs((found.get(name) ?? 0) - value) <= value / 50, `${name}: ${value}, speedscope shows ${found.get(name)}`);
  return `, ${seen.rows.length} rows in its page`;
}

// What RSS is made of: the moments with their parts, the rows of the ledger and what was mapped, with their stacks.
function compareMemory(ask) {
  const partsOf = (moment) => (moment.sampled ?? moment).parts;
  const named = (moments, key) => moments.map((each) => [each.moment ?? null, each[key], each.rss_bytes ?? each.rss]);
  const order = (list) => list.map((each) => JSON.stringify(each)).sort();
  const times = ask("SELECT * FROM memory_times"), expected = [...report.memory, ...report.ledger_over_time];
  assert.deepEqual(order(named(times, "time_ns")), order(named(expected, "time_ns")));
  const parts = new Map();
  for (const { time_id, part, bytes } of ask("SELECT * FROM memory_parts ORDER BY time_id, position"))
    parts.set(time_id, { ...parts.get(time_id), [part]: bytes });
  assert.deepEqual(order(times.map((each) => parts.get(each.id))), order(expected.map(partsOf)));
  for (const { id, rss } of times) assert.equal(Object.values(parts.get(id)).reduce((sum, each) => sum + each, 0), rss);
  const names = (table, id) => {
    const stacks = new Map();
    for (const row of ask(`SELECT s.*, f.name FROM ${table} s JOIN frames h ON h.id = s.frame_id
        JOIN functions f ON f.id = h.function_id ORDER BY s.depth`))
      stacks.set(row[id], [...(stacks.get(row[id]) ?? []), row.name]);
    return stacks;
  };
  const known = (stack) => stack.map((frame) => frame.function).filter(Boolean);
  const ledger = ask("SELECT l.*, t.moment FROM ledger l JOIN memory_times t ON t.id = l.time_id ORDER BY l.id");
  let stacks = names("ledger_stacks", "ledger_id");
  assert.equal(ledger.length, report.ledger.length);
  report.ledger.forEach((row, index) => {
    const found = ledger[index];
    for (const [column, key] of [["moment", "moment"], ["kind", "kind"], ["title", "title"], ["name", "name"], ["tid", "tid"],
      ["mappings", "mappings"], ["bytes", "bytes"], ["resident", "resident_bytes"], ["private", "private_bytes"],
      ["pss", "pss_bytes"], ["swap", "swap_bytes"], ["huge_pages", "huge_page_bytes"]])
      assert.equal(found[column], row[key], `${column} of the ledger's row ${index}`);
    const functions = stacks.get(found.id) ?? [];
    assert.equal(functions.length, row.stack.length);
    for (const name of known(row.stack)) assert.ok(functions.includes(name), `${name} in the stack of row ${index}`);
  });
  const mappings = ask("SELECT * FROM mappings ORDER BY id");
  stacks = names("mapping_stacks", "mapping_id");
  assert.equal(mappings.length, report.mappings.length);
  report.mappings.forEach((row, index) => {
    for (const key of ["calls", "bytes", "mapped_bytes", "peak_bytes"]) assert.equal(mappings[index][key], row[key]);
    assert.equal((stacks.get(mappings[index].id) ?? []).length, row.stack.length);
  });
  return `${times.length} moments of memory, ${ledger.length} rows`;
}

// What blocks hold: the same rows, with the same columns, and the same examples.
function compareContents(ask) {
  const rows = ask("SELECT * FROM contents"), examples = ask("SELECT * FROM content_examples ORDER BY id");
  const of = (context) => examples.filter((each) => each.context_id === context);
  const compare = (expected, found) => assert.deepEqual(
    found.map((each) => [each.bytes, each.copies, each.copies_here, each.text, each.hex]),
    expected.map((each) => [each.bytes, each.copies, each.copies_here, each.text, each.hex]));
  assert.equal(rows.length, report.contents.length);
  for (const expected of report.contents) {
    const found = rows.find((row) => row.context_id === expected.context);
    for (const [key, value] of Object.entries(expected))
      if (key !== "context" && key !== "examples") assert.equal(found[key], value, `${key} of context ${expected.context}`);
    compare(expected.examples, of(expected.context));
  }
  compare(report.content_search.most_frequent, of(null));
  return `, contents of ${rows.length} places`;
}

const checks = {
  async pprof() {
    const { Profile } = await import("pprof-format");
    const profile = Profile.decode(gunzipSync(readFileSync(file)));
    const text = (index) => profile.stringTable.strings[Number(index)];
    const functions = new Map(profile.function.map((f) => [Number(f.id), f]));
    const locations = new Map(profile.location.map((l) => [Number(l.id), l]));
    const mappings = new Map(profile.mapping.map((m) => [Number(m.id), m]));
    assert.equal(text(0), "");
    assert.equal(new Set(profile.stringTable.strings).size, profile.stringTable.strings.length, "strings are unique");
    assert.equal(locations.size, profile.location.length, "ids are unique");
    assert.equal(functions.size, profile.function.length, "ids are unique");
    for (const location of profile.location) {
      const mapping = mappings.get(Number(location.mappingId));
      if (Number(location.mappingId)) assert.ok(mapping, "the location's mapping is there");
    }
    const types = profile.sampleType.map((type) => text(type.type));
    assert.deepEqual(types, keys.map((name) => names[name]).filter((name) => types.includes(name)));
    assert.ok(types.includes(names.bytes) && types.includes(text(profile.defaultSampleType)));
    if (key) assert.equal(text(profile.defaultSampleType), names[key]);
    for (const [index, type] of types.entries()) {
      const found = new Map();
      for (const sample of profile.sample) {
        assert.equal(sample.value.length, types.length);
        const stack = sample.locationId.flatMap((id) =>
          locations.get(Number(id)).line.map((line) => text(functions.get(Number(line.functionId)).name)));
        add(found, stack.reverse(), Number(sample.value[index]));
      }
      const name = Object.keys(names).find((each) => names[each] === type);
      assertSameSums(type, found, byStack(contexts, name, visible));
    }
    const labels = profile.sample.flatMap((sample) => sample.label);
    for (const context of contexts)
      if (context.type !== null)
        assert.ok(labels.some((label) => text(label.key) === "type" && text(label.str) === visible(context.type)));
    return `${profile.sample.length} samples of ${types.length} types`;
  },

  // dh_view.js itself, on as much of a document as it touches.
  dhat() {
    const element = () => ({
      childNodes: [], classList: { add() {}, contains: () => true, toggle() {} }, style: {}, text: "",
      get selectedIndex() { return Math.max(this.childNodes.findLastIndex((child) => child.selected), 0); },
      appendChild(child) { this.childNodes.push(child); child.parentNode = this; return child; },
      insertBefore(child) { return this.appendChild(child); },
      replaceChild(child) { child.parentNode = this; this.childNodes.push(child); return child; },
      removeChild() {}, remove() {}, cloneNode: () => element(),
      setAttribute() {}, addEventListener() {},
    });
    const document = { ...{ title: "", location: { search: "" } }, createElement: element,
      createTextNode: (text) => ({ ...element(), text }), body: element() };
    const context = vm.createContext({ document, window: {}, performance, URLSearchParams, console });
    const viewer = process.env.DH_VIEW ?? "/usr/libexec/valgrind/dh_view.js";
    vm.runInContext(readFileSync(viewer, "utf8") + `
      this.show = (text) => {
        onLoad();
        gData = JSON.parse(text);
        buildTree();
        gFilename = "test";
        const metrics = gSelectData.map((data, index) => {
          if (gSelect.childNodes[index].disabled) return false;
          for (const option of gSelect.childNodes) option.selected = false;
          gSelect.childNodes[index].selected = true;
          displayTree(0, 0, 0);
          return true;
        });
        return { root: gRoot, metrics };
      };`, context);
    const { root, metrics } = context.show(readFileSync(file, "utf8"));
    const data = JSON.parse(readFileSync(file, "utf8"));
    const heap = contexts.filter((each) => !each.pool);
    const total = (name) => heap.reduce((sum, each) => sum + (each.values[name] ?? 0), 0);
    assert.equal(root._totalBytes, total("bytes"));
    assert.equal(root._totalBlocks, total("count"));
    assert.equal(data.pps.length, heap.length);
    if (data.bklt) {
      assert.equal(root._atTGmaxBytes, total("peak"));
      assert.equal(root._atTGmaxBlocks, total("peak-count"));
      assert.equal(root._atTEndBytes, total("leaked"));
      assert.equal(root._atTEndBlocks, total("live-count"));
      assert.equal(root._totalLifetimes, total("total-lifetime") + heap.reduce((sum, each) => sum + each.live_age, 0));
    }
    assert.equal(data.bkacc, false);
    const name = (frame) => data.ftbl[frame].replace(/^0x[0-9A-F]+: /, "").replace(/ \((?!\))[^()]*(\([^()]*\)[^()]*)*\)$/, "");
    const found = new Map();
    for (const point of data.pps) add(found, point.fs.map(name).reverse(), point.tb);
    const expected = byStack(heap, "bytes", visible);
    assert.equal([...found.values()].reduce((a, b) => a + b, 0), [...expected.values()].reduce((a, b) => a + b, 0));
    let same = 0;
    for (const [stack, value] of expected) same += found.get(stack) === value;
    assert.ok(same >= 0.9 * expected.size, `${same} of ${expected.size} stacks`);
    return `${data.pps.length} points, ${metrics.filter(Boolean).length} metrics shown`;
  },

  // A reader as strict as the format allows: stack, one space, number.
  collapsed() {
    const lines = readFileSync(file, "utf8").split("\n");
    assert.equal(lines.pop(), "", "the last line ends");
    const found = new Map();
    for (const line of lines) {
      const match = /^([^\n]*) ([1-9][0-9]*)$/.exec(line);
      assert.ok(match, `'${line}' is a stack and a value`);
      const stack = match[1].split(";");
      assert.ok(!found.has(JSON.stringify(stack)), "each stack is there once");
      add(found, stack, Number(match[2]));
    }
    assertSameSums(key, found, byStack(contexts, key, (name) => visible(name).replaceAll(";", "\\x3b")));
    return `${lines.length} lines`;
  },

  async speedscope() {
    const { default: Ajv } = await import("ajv");
    const schema = require("speedscope/dist/release/file-format-schema.json");
    const data = JSON.parse(readFileSync(file, "utf8"));
    const ajv = new Ajv({ strict: false });
    const validate = ajv.compile(schema);
    assert.ok(validate(data), ajv.errorsText(validate.errors));
    for (const profile of data.profiles) {
      assert.equal(profile.samples.length, profile.weights.length);
      assert.equal(profile.weights.reduce((a, b) => a + b, 0), profile.endValue);
      for (const sample of profile.samples)
        for (const frame of sample) assert.ok(data.shared.frames[frame], "the frame is there");
    }
    const titles = { bytes: "allocated", peak: "live at the peak", leaked: "not freed", count: "allocations" };
    for (const [name, title] of Object.entries(titles)) {
      const profile = data.profiles.find((each) => each.name.replace(" (estimated)", "") === title);
      const expected = byStack(contexts, name);
      assert.equal(!profile, !expected.size, title);
      const found = new Map();
      for (const [index, sample] of (profile?.samples ?? []).entries())
        add(found, sample.map((frame) => data.shared.frames[frame].name), profile.weights[index]);
      assertSameSums(title, found, expected);
      if (key === name) assert.equal(data.profiles[data.activeProfileIndex], profile);
    }
    return `${data.profiles.length} profiles${key in titles ? await inItsPage(titles[key]) : ""}`;
  },

  sqlite() {
    const ask = (sql) => {
      const text = execFileSync("sqlite3", ["-readonly", "-json", file, sql], { encoding: "utf8", maxBuffer: 1 << 30 });
      return text ? JSON.parse(text) : [];
    };
    assert.deepEqual(ask("PRAGMA foreign_key_check"), []);
    assert.deepEqual(ask("PRAGMA integrity_check"), [{ integrity_check: "ok" }]);
    assert.equal(ask("PRAGMA user_version")[0].user_version, 1);
    const columns = { bytes: "bytes", count: "allocations", leaked: "live_bytes", "live-count": "live_allocations",
      peak: "peak_bytes", "peak-count": "peak_allocations", frees: "frees", temporary: "temporary",
      realloc: "reallocations", accesses: "accesses", reads: "reads", writes: "writes" };
    const rows = new Map(ask("SELECT * FROM contexts").map((row) => [row.id, row]));
    const stacks = new Map();
    for (const line of ask("SELECT context_id, function FROM stack_lines ORDER BY context_id, depth DESC")) {
      if (!stacks.has(line.context_id)) stacks.set(line.context_id, []);
      stacks.get(line.context_id).push(line.function);
    }
    assert.equal(rows.size, contexts.length);
    for (const context of contexts) {
      const row = rows.get(context.id);
      for (const [name, column] of Object.entries(columns))
        if (!context.pool && name in context.values)
          assert.equal(Math.max(row[column] ?? 0, 0), context.values[name] ?? 0, `${column} of ${context.id}`);
      assert.deepEqual(stacks.get(context.id) ?? ["[stack not known]"], context.stack);
      assert.equal(row.type, context.type);
    }
    assert.equal(ask("SELECT count(*) AS n FROM timeline")[0].n, report.timeline.length);
    assert.equal(ask("SELECT count(*) AS n FROM globals")[0].n,
      (report.globals ?? report.sampled?.globals ?? []).length);
    assert.equal(ask("SELECT count(*) AS n FROM findings")[0].n, (report.findings ?? []).length);
    const memory = compareMemory(ask);
    const not = ask("SELECT text FROM notes WHERE kind = 'not observed'").map((row) => row.text);
    assert.deepEqual(not, report.not_observed);
    const questions = readFileSync(new URL("../../docs/sqlite.md", import.meta.url), "utf8").split("## Questions")[1]
      .split("\n").filter((line) => line.startsWith("    ")).join("\n").split(";").filter((each) => each.trim());
    assert.ok(questions.length >= 9);
    for (const question of questions) ask(question);
    return `${rows.size} contexts, ${memory}${report.contents ? compareContents(ask) : ""}`;
  },

  csv() {
    const rows = JSON.parse(execFileSync("python3", [new URL("read_csv.py", import.meta.url).pathname, file],
      { encoding: "utf8", maxBuffer: 1 << 30 }));
    assert.equal(rows.length, contexts.length);
    const byId = new Map(rows.map((row) => [Number(row.id), row]));
    const plain = (name) => visible(name).replaceAll(";", "\\x3b");
    for (const context of contexts) {
      const row = byId.get(context.id);
      for (const name of keys)
        if (row[name] !== "") assert.equal(Number(row[name]), context.values[name] ?? 0, `${name} of ${context.id}`);
      for (const name of ["bytes", "count"]) assert.notEqual(row[name], "");
      const expected = context.stack.map(plain).join(";").replace(/^[=+@-]/, (c) => "\\x" + c.charCodeAt(0).toString(16));
      assert.equal(row.stack, expected === "[stack not known]" ? "" : expected);
      for (const field of Object.values(row)) assert.ok(!/^[=+@-]/.test(field), `'${field}' is no formula`);
    }
    return `${rows.length} lines`;
  },
};

console.log(`${format}: ${await checks[format]()}`);
