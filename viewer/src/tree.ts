/* tree.ts - calls merged by function, from the root or from the leaf, of one profile or of two.
 *
 * Nodes are numbers; a parent has a smaller one than its children, so that sums over subtrees are one pass backwards.
 * Node 0 is the root and stands for the whole program. */
import type { Profile } from './model';
import type { Column } from './decode';

/* From a pair of numbers to a node, in open addressing: a Map of half a million entries takes seconds. */
class Pairs {
    private mask = (1 << 16) - 1;
    private slots = new Int32Array(1 << 16).fill(-1);
    constructor(
        private readonly parent: Grown,
        private readonly name: Grown,
    ) {}

    private slot(parent: number, name: number): number {
        let at = Math.imul(parent + Math.imul(name + 1, 0x9e3779b1), 0x85ebca6b);
        at = Math.imul(at ^ (at >>> 15), 0xc2b2ae35);
        at = (at ^ (at >>> 13)) & this.mask;
        for (let node = this.slots[at]!; node >= 0; node = this.slots[at]!) {
            if (this.parent.at[node] === parent && this.name.at[node] === name)
                break;
            at = (at + 1) & this.mask;
        }
        return at;
    }

    child(parent: number, name: number): number {
        let at = this.slot(parent, name);
        if (this.slots[at]! >= 0)
            return this.slots[at]!;
        if (this.name.size * 2 > this.mask) {
            this.mask = this.mask * 2 + 1;
            this.slots = new Int32Array(this.mask + 1).fill(-1);
            for (let node = 1; node < this.name.size; node++)
                this.slots[this.slot(this.parent.at[node]!, this.name.at[node]!)] = node;
            at = this.slot(parent, name);
        }
        this.slots[at] = this.name.size;
        this.parent.push(parent);
        return this.name.push(name);
    }
}

class Grown {
    at = new Int32Array(1 << 12);
    size = 0;
    push(value: number): number {
        if (this.size === this.at.length) {
            const grown = new Int32Array(this.size * 2);
            grown.set(this.at);
            this.at = grown;
        }
        this.at[this.size] = value;
        return this.size++;
    }
}

export class CallTree {
    readonly names: string[] = [];
    readonly system: Uint8Array; // by name: code of the system's libraries
    readonly parent: Int32Array;
    readonly name: Int32Array; // number in `names`; -1 of the root
    readonly firstChild: Int32Array; // -1: none
    readonly nextSibling: Int32Array;
    readonly depth: Int32Array; // 0 of the root
    readonly node: Int32Array[] = []; // by profile: by context, where its stack ends
    readonly size: number;

    constructor(
        readonly profiles: Profile[],
        readonly inverted: boolean,
    ) {
        const parent = new Grown();
        const name = new Grown();
        parent.push(-1);
        name.push(-1);
        const pairs = new Pairs(parent, name);
        const known = new Map<string, number>();
        const kinds: number[] = [];
        for (const profile of profiles) {
            const own = Int32Array.from(profile.names, (text) => known.get(text) ?? known.set(text, known.size).size - 1);
            for (let location = 0; location + 1 < profile.firstFrame.length; location++)
                for (let i = profile.firstFrame[location]!; i < profile.firstFrame[location + 1]!; i++)
                    kinds[own[profile.frameName[i]!]!] = profile.moduleKind(location);
            this.node.push(inverted ? fromLeaf(profile, own, pairs) : fromRoot(profile, own, pairs));
        }
        for (const text of known.keys())
            this.names.push(text);
        this.system = Uint8Array.from(this.names, (_, number) => (kinds[number] ? 1 : 0));
        this.size = name.size;
        this.parent = parent.at.subarray(0, this.size);
        this.name = name.at.subarray(0, this.size);
        this.firstChild = new Int32Array(this.size).fill(-1);
        this.nextSibling = new Int32Array(this.size).fill(-1);
        this.depth = new Int32Array(this.size);
        for (let node = 1; node < this.size; node++) {
            const above = this.parent[node]!;
            this.nextSibling[node] = this.firstChild[above]!;
            this.firstChild[above] = node;
            this.depth[node] = this.depth[above]! + 1;
        }
    }

    /* The sum of VALUES (by context) in each subtree, of contexts with a MASK. */
    sums(profile: number, values: Column, mask: Uint8Array | null = null): Float64Array {
        const sums = this.own(profile, values, mask);
        for (let node = this.size - 1; node > 0; node--)
            sums[this.parent[node]!]! += sums[node]!;
        return sums;
    }

    /* What stands at each node itself. */
    own(profile: number, values: Column, mask: Uint8Array | null = null): Float64Array {
        const sums = new Float64Array(this.size);
        const nodes = this.node[profile]!;
        for (let context = 0; context < nodes.length; context++)
            if (!mask || mask[context])
                sums[nodes[context]!]! += values[context]!;
        return sums;
    }

    /* The contexts of a profile whose stacks have the function NAME. */
    through(profile: number, name: string): Uint8Array {
        const number = this.names.indexOf(name);
        const within = new Uint8Array(this.size);
        for (let node = 1; node < this.size; node++)
            within[node] = this.name[node] === number || within[this.parent[node]!] ? 1 : 0;
        return Uint8Array.from(this.node[profile]!, (node) => within[node]!);
    }

    /* The functions from the root to NODE. */
    path(node: number): string[] {
        const path: string[] = [];
        for (; node > 0; node = this.parent[node]!)
            path.push(this.names[this.name[node]!]!);
        return path.reverse();
    }

    /* The node with that path; the nearest one above it when there is none. */
    find(path: string[]): number {
        let node = 0;
        for (const text of path) {
            const number = this.names.indexOf(text);
            let child = this.firstChild[node]!;
            while (child >= 0 && this.name[child] !== number)
                child = this.nextSibling[child]!;
            if (child < 0)
                return node;
            node = child;
        }
        return node;
    }
}

function fromRoot(profile: Profile, own: Int32Array, pairs: Pairs): Int32Array {
    const nodes = new Int32Array(profile.parent.length);
    for (let at = 1; at < nodes.length; at++) {
        let node = nodes[profile.parent[at]!]!;
        const location = profile.location[at]!;
        for (let i = profile.firstFrame[location + 1]! - 1; i >= profile.firstFrame[location]!; i--)
            node = pairs.child(node, own[profile.frameName[i]!]!);
        nodes[at] = node;
    }
    return Int32Array.from(profile.leaf, (leaf) => nodes[leaf]!);
}

function fromLeaf(profile: Profile, own: Int32Array, pairs: Pairs): Int32Array {
    return Int32Array.from(profile.leaf, (leaf) => {
        let node = 0;
        for (let at = leaf; at > 0; at = profile.parent[at]!) {
            const location = profile.location[at]!;
            for (let i = profile.firstFrame[location]!; i < profile.firstFrame[location + 1]!; i++)
                node = pairs.child(node, own[profile.frameName[i]!]!);
        }
        return node;
    });
}
