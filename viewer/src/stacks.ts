/* stacks.ts - call stacks as a tree of names: what flame graphs are made of, of one profile or of two.
 *
 * Nodes are numbers; a parent has a smaller one than its children, so that what holds for a stack is one pass. Node 0
 * is the root. Several children of a node may have one name: calls from different lines. */
import type { Profile } from './model';

export interface Stacks {
    names: string[];
    system: Uint8Array; // by name: code of the system's libraries
    module: Int32Array | null; // by name: number of a module; null, -1: not known
    parent: Int32Array;
    name: Int32Array; // number in `names`; -1 of the root
    leaf: Int32Array[]; // by profile: by context
    frame: Int32Array | null; // by node: number of the frame in the profile; null: those of a comparison have none
}

/* Every function of the stacks of a profile, inlined ones too. */
function make(profile: Profile): Stacks {
    const { parent, location, firstFrame, frameName } = profile;
    const system = new Uint8Array(profile.names.length);
    const module = new Int32Array(profile.names.length).fill(-1);
    for (let at = 0; at + 1 < firstFrame.length; at++)
        for (let i = firstFrame[at]!; i < firstFrame[at + 1]!; i++) {
            system[frameName[i]!] = profile.moduleKind(at) ? 1 : 0;
            module[frameName[i]!] = profile.moduleNumber(at);
        }
    let size = 1;
    for (let node = 1; node < parent.length; node++)
        size += firstFrame[location[node]! + 1]! - firstFrame[location[node]!]!;
    const stacks = { names: profile.names, system, module, parent: new Int32Array(size), name: new Int32Array(size).fill(-1), frame: new Int32Array(size).fill(-1) };
    const last = new Int32Array(parent.length); // where a node of the profile ends
    size = 1;
    for (let node = 1; node < parent.length; node++) {
        let above = last[parent[node]!]!;
        for (let i = firstFrame[location[node]! + 1]! - 1; i >= firstFrame[location[node]!]!; i--) {
            stacks.parent[size] = above;
            stacks.name[size] = frameName[i]!;
            stacks.frame[size] = i;
            above = size++;
        }
        last[node] = above;
    }
    return { ...stacks, leaf: [profile.leaf.map((leaf) => last[leaf] ?? 0)] };
}

function once<Result extends object>(made: (profile: Profile) => Result): (profile: Profile) => Result {
    const known = new WeakMap<Profile, Result>();
    return ({ whole: profile }) => { // parts of a run have the same stacks
        const result = known.get(profile) ?? made(profile);
        known.set(profile, result);
        return result;
    };
}

/* Allocation wrappers: the frames nearest to the allocator that are marked so. Stacks end above them, but never above the
 * one that names the context. */
export function wraps(profile: Profile): boolean {
    return profile.table('frame.wrapper')?.some((each) => each > 0) ?? false;
}

function withoutWrappers(profile: Profile): Stacks {
    const stacks = withWrappers(profile);
    if (!wraps(profile))
        return stacks;
    const wrapper = profile.table('frame.wrapper')!;
    const { frame, parent } = stacks;
    const leaf = new Int32Array(stacks.leaf[0]!);
    for (let context = 0; context < leaf.length; context++)
        for (let below = profile.headline[context]!; below > 0 && wrapper[frame![leaf[context]!]!]; below--)
            leaf[context] = parent[leaf[context]!]!;
    return { ...stacks, leaf: [leaf] };
}

/* Call stacks of a profile, with those functions and without. */
export const withWrappers = once(make);
export const stacksOf = once(withoutWrappers);

/* By node of the stacks: whether it is code that starts the process or a thread, as far as the report says. */
export const startOf = once((profile) => {
    const { parent, location, firstFrame } = profile;
    const { parent: stackParent } = withWrappers(profile);
    const frames = new Int32Array(parent.length);
    profile.table('start.node')?.forEach((node, index) => (frames[node] = profile.table('start.frames')![index]!));
    const start = new Uint8Array(stackParent.length);
    let at = 1; // nodes of the stacks come in the order of those of the profile, from the outermost frame on
    for (let node = 1; node < parent.length; node++) {
        const count = firstFrame[location[node]! + 1]! - firstFrame[location[node]!]!;
        start.fill(1, at, at + Math.min(count, frames[node]!));
        at += count;
    }
    return start;
});

/* By context: the node of the frame that names it. Only library code and wrappers may be below. */
export const headsOf = once((profile) => {
    const { leaf, parent } = withWrappers(profile);
    const heads = new Int32Array(leaf[0]!);
    for (let context = 0; context < heads.length; context++)
        for (let below = profile.headline[context]!; below > 0 && parent[heads[context]!]!; below--)
            heads[context] = parent[heads[context]!]!;
    return heads;
});

/* Nodes without detours: a KEY (by node) that is on the way already leads back to where it was met first. By node: the
 * one that stands for it. Nodes that stand for themselves have no key twice on their way, and cover all keys. */
export function withoutDetours(parent: Int32Array, key: Int32Array): { of: Int32Array; above: Int32Array } {
    const of = new Int32Array(parent.length);
    const above = new Int32Array(parent.length); // of nodes that stand for themselves: the next one that does
    for (let node = 1; node < parent.length; node++) {
        const start = of[parent[node]!]!;
        let at = start;
        while (at && key[at] !== key[node])
            at = above[at]!;
        of[node] = at || node;
        if (!at)
            above[node] = start;
    }
    return { of, above };
}

/* The same stacks with recursion folded, as the terminal does it (report/view/call_paths.h): a way from a function to
 * itself is cut out, so that no function is twice on the way to a node. What cannot be told apart any more is one node. */
interface Folded extends Stacks {
    place: Int32Array; // by context: equal where only recursion differs
    to: Int32Array | null; // by node of the stacks before: the node now; null: the same
}

function fold(profile: Profile, stacks: Stacks): Folded {
    const { of, above } = withoutDetours(stacks.parent, stacks.name);
    const detour = new Uint8Array(of.length);
    let recursive = false;
    for (let node = 1; node < of.length; node++) {
        detour[node] = of[node] !== node || detour[stacks.parent[node]!] ? 1 : 0;
        recursive ||= of[node] !== node;
    }
    const leaf = stacks.leaf[0]!;
    if (!recursive)
        return { ...stacks, place: leaf, to: null };
    const same = merged(above, stacks.name, of);
    const number = new Int32Array(of.length); // of those that are kept
    let count = 0;
    for (let node = 0; node < of.length; node++)
        if (same[node] === node)
            number[node] = count++;
    const [parent, name, frame] = [new Int32Array(count), new Int32Array(count), new Int32Array(count)];
    for (let node = 0; node < of.length; node++)
        if (same[node] === node) {
            parent[number[node]!] = number[same[above[node]!]!]!;
            name[number[node]!] = stacks.name[node]!;
            frame[number[node]!] = stacks.frame![node]!;
        }
    const to = new Int32Array(of.length);
    for (let node = 0; node < of.length; node++)
        to[node] = number[same[of[node]!]!]!;
    /* What allocates at one address, by one folded path, is one place; stacks without recursion stay by themselves. */
    const places = new Map<number, number>();
    const place = new Int32Array(leaf);
    const shorter = new Int32Array(leaf.length);
    for (let context = 0; context < leaf.length; context++) {
        const node = leaf[context]!;
        shorter[context] = to[node]!;
        if (!detour[node])
            continue;
        const key = to[node]! * 2 ** 26 + profile.location[profile.leaf[context]!]!;
        const known = places.get(key);
        if (known === undefined)
            places.set(key, node);
        else
            place[context] = known;
    }
    return { ...stacks, parent, name, frame, leaf: [shorter], place, to };
}

export const foldedOf = once((profile: Profile) => fold(profile, stacksOf(profile)));
export const foldedWithWrappers = once((profile: Profile) => fold(profile, withWrappers(profile)));

/* By node that stands for itself: the first one with the same name and the same nodes above. */
function merged(parent: Int32Array, name: Int32Array, of: Int32Array): Int32Array {
    const same = new Int32Array(parent.length);
    const size = 2 ** Math.ceil(Math.log2(parent.length * 2 + 2));
    const slots = new Int32Array(size);
    for (let node = 1; node < parent.length; node++) {
        if (of[node] !== node)
            continue;
        const up = same[parent[node]!]!;
        let slot = (Math.imul(up, 0x9e3779b1) ^ Math.imul(name[node]!, 0x85ebca6b)) >>> 0;
        slot = (slot ^ (slot >>> 15)) & (size - 1);
        while (slots[slot] && (name[slots[slot]!] !== name[node] || same[parent[slots[slot]!]!] !== up))
            slot = (slot + 1) & (size - 1);
        slots[slot] ||= node;
        same[node] = slots[slot]!;
    }
    return same;
}

/* By node: whether a function with a HIT (by name) is on the way to it. */
export function within(stacks: Stacks, hit: Uint8Array): Uint8Array {
    const found = new Uint8Array(stacks.parent.length);
    for (let node = 1; node < found.length; node++)
        found[node] = found[stacks.parent[node]!]! | hit[stacks.name[node]!]!;
    return found;
}

/* By name: whether it has WORD, in small letters, in it. */
export function namesWith(names: string[], word: string): Uint8Array {
    return Uint8Array.from(names, (text) => (text.toLowerCase().includes(word) ? 1 : 0));
}
