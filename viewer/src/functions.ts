/* functions.ts - values by function, by source file, line or module: what stands there itself (self), and with all that
 * is called from there (cum), each stack counted once; and what stands above and below one function. Self is what places
 * have that are named after it, as in the terminal: library code that it calls is part of it. */
import type { Column } from './decode';
import { baseName, type Profile } from './model';
import { headsOf, stacksOf, startOf, type Stacks } from './stacks';

/* How frames are put together: a number for each node of the stacks, and what that is called. */
export interface Frames {
    stacks: Stacks;
    of: Int32Array; // by node; -1 of the root
    count: number;
    title: (number: number) => string;
    where: (number: number) => string;
    outermost: Uint8Array; // by node: it is the first of its kind on the way from the root, and counts
    leaf: Int32Array; // by context: where its stack ends, as far as it counts
    alone: Int32Array; // contexts that start code allocates by itself
    heads: Int32Array; // by context: the node that names it
    line: (file: number, line: number) => number; // of lines: the number of one; -1: nothing is there
}

/* 'every': by function, of whole stacks; the others are of what the terminal sums up (report/view/groups.c): from the
 * frame that names a place to the code that starts processes and threads. */
export type FrameKey = 'function' | 'file' | 'line' | 'module' | 'every';

const lineKey = (file: number, line: number) => file * 2 ** 24 + line;

function numbered(profile: Profile, key: FrameKey): Pick<Frames, 'of' | 'count' | 'title' | 'where' | 'line'> {
    const stacks = stacksOf(profile);
    const none = '(not known)';
    if (key === 'function' || key === 'every') {
        const first = new Int32Array(stacks.names.length).fill(-1);
        for (let node = stacks.name.length - 1; node > 0; node--)
            first[stacks.name[node]!] = stacks.frame![node]!;
        const file = (name: number) => (first[name]! >= 0 ? baseName(profile.fileName(profile.fileNumber(first[name]!))) : '');
        const module = (name: number) => baseName(profile.modulePath(stacks.module![name]!));
        return { of: stacks.name, count: stacks.names.length, title: (name) => stacks.names[name]!, where: (name) => file(name) || module(name), line: () => -1 };
    }
    const numbers = new Map<number, number>();
    const examples: number[] = []; // a node of each
    const keyOf = (node: number) => {
        const frame = stacks.frame![node]!;
        const file = key === 'module' ? 0 : profile.fileNumber(frame);
        /* Where the source is not known, the module stands for it. */
        return !file ? -1 - stacks.module![stacks.name[node]!]! : key === 'file' ? file : lineKey(file, profile.lineOf(frame));
    };
    const of = new Int32Array(stacks.parent.length).fill(-1);
    for (let node = 1; node < of.length; node++) {
        const written = keyOf(node);
        let number = numbers.get(written);
        if (number === undefined) {
            number = examples.push(node) - 1;
            numbers.set(written, number);
        }
        of[node] = number;
    }
    const frame = (number: number) => stacks.frame![examples[number]!]!;
    const module = (number: number) => profile.modulePath(stacks.module![stacks.name[examples[number]!]!]!);
    const file = (number: number) => profile.fileName(profile.fileNumber(frame(number)));
    const where = (number: number) => (key === 'module' ? '' : file(number)) || module(number);
    if (key === 'module' || key === 'file')
        return { of, count: examples.length, title: (number) => baseName(where(number)) || none, where, line: () => -1 };
    const line = (file: number, line: number) => numbers.get(lineKey(file, line)) ?? -1;
    return { of, line, count: examples.length, title: (number) => (file(number) ? `${baseName(file(number))}:${profile.lineOf(frame(number))}` : baseName(module(number)) || none), where };
}

/* By node: whether its KEY is on no node above it. Those of START do not count. */
function outermost(parent: Int32Array, key: Int32Array, count: number, start: Uint8Array | null): Uint8Array {
    const firstChild = new Int32Array(parent.length).fill(-1);
    const nextSibling = new Int32Array(parent.length).fill(-1);
    for (let node = parent.length - 1; node > 0; node--) {
        nextSibling[node] = firstChild[parent[node]!]!;
        firstChild[parent[node]!] = node;
    }
    const found = new Uint8Array(parent.length);
    const above = new Int32Array(count); // by key: how often it is on the way
    for (let node = firstChild[0] ?? -1; node > 0;) {
        if (!start?.[node])
            found[node] = above[key[node]!]!++ ? 0 : 1;
        if (firstChild[node]! > 0) {
            node = firstChild[node]!;
            continue;
        }
        while (node > 0 && nextSibling[node]! < 0) {
            above[key[node]!]! -= start?.[node] ? 0 : 1;
            node = parent[node]!;
        }
        if (node > 0) {
            above[key[node]!]! -= start?.[node] ? 0 : 1;
            node = nextSibling[node]!;
        }
    }
    return found;
}

const known = new WeakMap<Profile, Map<FrameKey, Frames>>();

export function framesBy({ whole: profile }: Profile, key: FrameKey): Frames {
    const all = known.get(profile) ?? new Map<FrameKey, Frames>();
    known.set(profile, all);
    let frames = all.get(key);
    if (!frames) {
        const stacks = stacksOf(profile);
        const made = numbered(profile, key);
        const heads = headsOf(profile);
        const start = key === 'every' ? null : startOf(profile);
        const alone: number[] = [];
        for (let context = 0; start && context < heads.length; context++)
            if (start[heads[context]!])
                alone.push(context);
        frames = { ...made, stacks, outermost: outermost(stacks.parent, made.of, made.count, start), heads, leaf: key === 'every' ? stacks.leaf[0]! : heads, alone: Int32Array.from(alone) };
        all.set(key, frames);
    }
    return frames;
}

/* The latest sums: of the columns of one table, which is grouped in several ways. */
const latest: { parent: Int32Array; leaf: Int32Array; values: Column; mask: Uint8Array | null; sums: Float64Array }[] = [];
const kept = 6;

/* Values of contexts added up over the nodes of the stacks, callees included. Neither VALUES nor MASK may change. */
function subtrees({ parent }: Stacks, leaf: Int32Array, values: Column, mask: Uint8Array | null): Float64Array {
    const known = latest.find((each) => each.parent === parent && each.leaf === leaf && each.values === values && each.mask === mask);
    if (known)
        return known.sums;
    const sums = new Float64Array(parent.length);
    for (let context = 0; context < leaf.length; context++)
        if (!mask || mask[context])
            sums[leaf[context]!]! += values[context]!;
    for (let node = sums.length - 1; node > 0; node--) // children come behind their parents
        sums[parent[node]!]! += sums[node]!;
    latest.push({ parent, leaf, values, mask, sums });
    if (latest.length > kept)
        latest.shift();
    return sums;
}

export function cum(frames: Frames, values: Column, mask: Uint8Array | null): Float64Array {
    const sums = subtrees(frames.stacks, frames.leaf, values, mask);
    const found = new Float64Array(frames.count);
    const { outermost, of } = frames;
    for (let node = 1; node < sums.length; node++)
        if (outermost[node])
            found[of[node]!]! += sums[node]!;
    for (const context of frames.alone)
        if (!mask || mask[context])
            found[of[frames.heads[context]!]!]! += values[context]!;
    return found;
}

export function self(frames: Frames, values: Column, mask: Uint8Array | null): Float64Array {
    const found = new Float64Array(frames.count);
    const { heads, of } = frames;
    for (let context = 0; context < heads.length; context++) {
        const number = of[heads[context]!]!;
        if (number >= 0 && (!mask || mask[context]))
            found[number]! += values[context]!;
    }
    return found;
}

let ones = new Float64Array(0);

/* By number: how many contexts have it anywhere on the stack. */
export function places(frames: Frames, mask: Uint8Array | null): Float64Array {
    const { length } = frames.stacks.leaf[0]!;
    if (ones.length !== length)
        ones = new Float64Array(length).fill(1);
    return cum(frames, ones, mask);
}
