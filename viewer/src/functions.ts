/* functions.ts - values by function, by source file, line or module: what stands there itself (self), and with all that
 * is called from there (cum), each stack counted once; and what stands above and below one function. */
import type { Column } from './decode';
import { baseName, type Profile } from './model';
import { stacksOf, type Stacks } from './stacks';

/* How frames are put together: a number for each node of the stacks, and what that is called. */
export interface Frames {
    stacks: Stacks;
    of: Int32Array; // by node; -1 of the root
    count: number;
    title: (number: number) => string;
    where: (number: number) => string;
    outermost: Uint8Array; // by node: it is the first of its kind on the way from the root
}

export type FrameKey = 'function' | 'file' | 'line' | 'module';

function numbered(profile: Profile, key: FrameKey): Pick<Frames, 'of' | 'count' | 'title' | 'where'> {
    const stacks = stacksOf(profile);
    const none = '(not known)';
    if (key === 'function') {
        const first = new Int32Array(stacks.names.length).fill(-1);
        stacks.name.forEach((name, node) => { if (name >= 0 && first[name]! < 0) first[name] = stacks.frame![node]!; });
        const file = (name: number) => (first[name]! >= 0 ? baseName(profile.fileName(profile.fileNumber(first[name]!))) : '');
        const module = (name: number) => baseName(profile.modulePath(stacks.module![name]!));
        return { of: stacks.name, count: stacks.names.length, title: (name) => stacks.names[name]!, where: (name) => file(name) || module(name) };
    }
    const numbers = new Map<number, number>();
    const examples: number[] = []; // a node of each
    const keyOf = (node: number) => {
        const frame = stacks.frame![node]!;
        return key === 'module' ? stacks.module![stacks.name[node]!]! : key === 'file' ? profile.fileNumber(frame) : profile.fileNumber(frame) * 2 ** 24 + profile.lineOf(frame);
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
    if (key === 'module')
        return { of, count: examples.length, title: (number) => baseName(module(number)) || none, where: module };
    if (key === 'file')
        return { of, count: examples.length, title: (number) => baseName(file(number)) || none, where: file };
    return { of, count: examples.length, title: (number) => (file(number) ? `${baseName(file(number))}:${profile.lineOf(frame(number))}` : none), where: file };
}

/* By node: whether its KEY is on no node above it. */
function outermost(parent: Int32Array, key: Int32Array, count: number): Uint8Array {
    const firstChild = new Int32Array(parent.length).fill(-1);
    const nextSibling = new Int32Array(parent.length).fill(-1);
    for (let node = parent.length - 1; node > 0; node--) {
        nextSibling[node] = firstChild[parent[node]!]!;
        firstChild[parent[node]!] = node;
    }
    const found = new Uint8Array(parent.length);
    const above = new Int32Array(count); // by key: how often it is on the way
    for (let node = firstChild[0] ?? -1; node > 0;) {
        found[node] = above[key[node]!]!++ ? 0 : 1;
        if (firstChild[node]! > 0) {
            node = firstChild[node]!;
            continue;
        }
        while (node > 0 && nextSibling[node]! < 0) {
            above[key[node]!]!--;
            node = parent[node]!;
        }
        if (node > 0) {
            above[key[node]!]!--;
            node = nextSibling[node]!;
        }
    }
    return found;
}

const known = new WeakMap<Profile, Map<FrameKey, Frames>>();

export function framesBy(profile: Profile, key: FrameKey): Frames {
    const all = known.get(profile) ?? new Map<FrameKey, Frames>();
    known.set(profile, all);
    let frames = all.get(key);
    if (!frames) {
        const stacks = stacksOf(profile);
        const made = numbered(profile, key);
        frames = { ...made, stacks, outermost: outermost(stacks.parent, made.of, made.count) };
        all.set(key, frames);
    }
    return frames;
}

/* Values of contexts added up over the nodes of the stacks, callees included. */
function subtrees(stacks: Stacks, values: Column, mask: Uint8Array | null): Float64Array {
    const sums = new Float64Array(stacks.parent.length);
    stacks.leaf[0]!.forEach((leaf, context) => { if (!mask || mask[context]) sums[leaf]! += values[context]!; });
    for (let node = sums.length - 1; node > 0; node--)
        sums[stacks.parent[node]!]! += sums[node]!;
    return sums;
}

export function cum(frames: Frames, values: Column, mask: Uint8Array | null): Float64Array {
    const sums = subtrees(frames.stacks, values, mask);
    const found = new Float64Array(frames.count);
    for (let node = 1; node < sums.length; node++)
        if (frames.outermost[node])
            found[frames.of[node]!]! += sums[node]!;
    return found;
}

export function self(frames: Frames, values: Column, mask: Uint8Array | null): Float64Array {
    const found = new Float64Array(frames.count);
    frames.stacks.leaf[0]!.forEach((leaf, context) => {
        const number = frames.of[leaf]!;
        if (number >= 0 && (!mask || mask[context]))
            found[number]! += values[context]!;
    });
    return found;
}

/* By number: how many contexts have it anywhere on the stack. */
export function places(frames: Frames, mask: Uint8Array | null): Float64Array {
    return cum(frames, new Float64Array(frames.stacks.leaf[0]!.length).fill(1), mask);
}
