// What heapwise report --json says of a profile, in the form that the exports are compared with: for each context its
// stack of names, root first, and its values by the keys of --value.
import { readFileSync } from "node:fs";

// Text as formats have it that cannot hold control characters.
export function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) =>
    [...Buffer.from(c, "utf8")].map((byte) => "\\x" + byte.toString(16).padStart(2, "0")).join(""));
}

function frameName(frame) {
  if (frame.function !== null) return frame.function;
  const at = "0x" + BigInt(frame.offset).toString(16);
  return frame.module === null ? at : `${frame.module.split("/").pop()}+${at}`;
}

function valuesOf(context, granule) {
  const counts = context.sampled && "bytes" in context.sampled ? context.sampled : context;
  const heap = {
    peak: counts.peak_bytes, "peak-count": counts.peak_allocations, bytes: counts.bytes, count: counts.allocations,
    leaked: counts.live_bytes, "live-count": counts.live_allocations, frees: counts.frees,
    temporary: counts.temporary, realloc: counts.reallocations, "total-lifetime": counts.lifetime_ns?.total ?? 0,
  };
  const values = {};
  for (const [key, value] of Object.entries(heap))
    values[key] = context.pool ? 0 : value === null ? null : Math.max(value, 0);
  values.pools = context.pool ? counts.bytes : 0;
  if ("accesses" in counts) {
    values.accesses = counts.accesses?.total ?? 0;
    values.reads = counts.accesses?.reads ?? 0;
    values.writes = counts.accesses?.writes ?? 0;
    values.untouched = (counts.granules - counts.granules_touched) * granule;
    values["never-accessed"] = counts.never_accessed;
    values["never-read"] = counts.written_never_read;
    values["shared-granules"] = counts.shared_granules;
  }
  return values;
}

export function readReport(path) {
  const report = JSON.parse(readFileSync(path, "utf8"));
  const contexts = report.contexts.map((context) => ({
    id: context.id,
    pool: context.pool,
    type: context.type,
    live_age: context.live_age_ns?.total ?? context.sampled?.live_age_ns?.total ?? 0,
    stack: context.stack.length ? context.stack.map(frameName).reverse() : ["[stack not known]"],
    values: valuesOf(context, report.process.access?.granule),
  }));
  return { report, contexts };
}

// Sums by stack of one value, zeros left out; NAME turns names of the report into those of a format.
export function byStack(contexts, key, name = (text) => text) {
  const sums = new Map();
  for (const context of contexts) {
    const stack = JSON.stringify(context.stack.map(name));
    if (context.values[key]) sums.set(stack, (sums.get(stack) ?? 0) + context.values[key]);
  }
  return sums;
}
