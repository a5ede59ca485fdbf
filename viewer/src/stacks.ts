/* stacks.ts - call stacks as a tree of names: what flame graphs are made of, of one profile or of two.
 *
 * Nodes are numbers; a parent has a smaller one than its children, so that what holds for a stack is one pass. Node 0
 * is the root. Several children of a node may have one name: calls from different lines. */
import type { Profile } from './model';

export interface Stacks {
    names: string[];
    system: Uint8Array; // by name: code of the system's libraries
    parent: Int32Array;
    name: Int32Array; // number in `names`; -1 of the root
    leaf: Int32Array[]; // by profile: by context
}

/* Those of a profile: every function of its stacks, inlined ones too. With FOLD they end above allocation wrappers: the
 * frames nearest to the allocator that are marked so, always below the one that names the context. */
export function stacksOf(profile: Profile, fold = true): Stacks {
    const { parent, location, firstFrame, frameName } = profile;
    const marked = fold ? profile.table('frame.wrapper') : null;
    const system = new Uint8Array(profile.names.length);
    for (let at = 0; at + 1 < firstFrame.length; at++)
        for (let i = firstFrame[at]!; i < firstFrame[at + 1]!; i++)
            system[frameName[i]!] = profile.moduleKind(at) ? 1 : 0;
    let size = 1;
    for (let node = 1; node < parent.length; node++)
        size += firstFrame[location[node]! + 1]! - firstFrame[location[node]!]!;
    const stacks = { names: profile.names, system, parent: new Int32Array(size), name: new Int32Array(size).fill(-1) };
    const last = new Int32Array(parent.length); // where a node of the profile ends
    const wrapper = new Uint8Array(size);
    size = 1;
    for (let node = 1; node < parent.length; node++) {
        let above = last[parent[node]!]!;
        for (let i = firstFrame[location[node]! + 1]! - 1; i >= firstFrame[location[node]!]!; i--) {
            stacks.parent[size] = above;
            stacks.name[size] = frameName[i]!;
            wrapper[size] = marked?.[i] ?? 0;
            above = size++;
        }
        last[node] = above;
    }
    const leaf = profile.leaf.map((node, context) => {
        let end = last[node] ?? 0;
        for (let below = profile.headline[context] ?? 0; below > 0 && wrapper[end]; below--)
            end = stacks.parent[end]!;
        return end;
    });
    return { ...stacks, leaf: [leaf] };
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
