/* tree.ts - calls merged by function, from the root or from the leaf, made as far as they are shown: the work grows
 * with what is shown and not with the profile. Nodes are numbers; 0 is the root and stands for the whole program. */
import type { Column } from './decode';
import type { Stacks } from './stacks';

const none = new Int32Array(0);

/* Lists by a small number, in two passes: count() everything, begin(), put() everything again, end(). */
class Groups {
    private readonly count: Int32Array;
    private readonly list: Int32Array[];
    readonly seen: number[] = []; // numbers that have a list, in the order in which they came

    constructor(numbers: number) {
        this.count = new Int32Array(numbers);
        this.list = new Array<Int32Array>(numbers).fill(none);
    }

    add(number: number): void {
        if (!this.count[number]!++)
            this.seen.push(number);
    }

    begin(): void {
        for (const number of this.seen) {
            this.list[number] = new Int32Array(this.count[number]!);
            this.count[number] = 0;
        }
    }

    put(number: number, item: number): void {
        this.list[number]![this.count[number]!++] = item;
    }

    /* The lists, in the order of `seen`; empty afterwards. */
    end(): { number: number; items: Int32Array }[] {
        const found = this.seen.map((number) => ({ number, items: this.list[number]! }));
        for (const number of this.seen) {
            this.list[number] = none;
            this.count[number] = 0;
        }
        this.seen.length = 0;
        return found;
    }
}

export class CallTree {
    readonly parent: number[] = [-1];
    readonly name: number[] = [-1]; // number in the names of the stacks; -1 of the root
    readonly depth: number[] = [0];
    /* What a node is made of. From the root: nodes of the stacks. From the leaf: contexts, those of the second profile
     * behind those of the first. */
    private readonly items: Int32Array[];
    private readonly children_: (number[] | null)[] = [null];
    private readonly groups: Groups;
    private readonly cursor: Int32Array; // from the leaf, by context: the node of the stacks that it has come to; -1 before
    private readonly leaf: Int32Array; // by context, those of all profiles
    private readonly firstChild: Int32Array; // from the root: of the stacks; -1: none
    private readonly nextSibling: Int32Array;

    /* From the leaf: of contexts with ONLY (by profile), if given. */
    constructor(
        readonly stacks: Stacks,
        readonly inverted: boolean,
        only: Uint8Array[] | null = null,
    ) {
        this.groups = new Groups(stacks.names.length);
        const first = stacks.leaf[0]!;
        const second = stacks.leaf[1] ?? none;
        this.leaf = new Int32Array(first.length + second.length);
        this.leaf.set(first);
        this.leaf.set(second, first.length);
        this.items = [inverted ? this.chosen(only) : new Int32Array(1)];
        this.cursor = inverted ? new Int32Array(this.leaf.length).fill(-1) : none;
        this.firstChild = inverted ? none : new Int32Array(stacks.parent.length).fill(-1);
        this.nextSibling = inverted ? none : new Int32Array(stacks.parent.length).fill(-1);
        const { firstChild, nextSibling } = this;
        for (let node = 1; !inverted && node < stacks.parent.length; node++) {
            nextSibling[node] = firstChild[stacks.parent[node]!]!;
            firstChild[stacks.parent[node]!] = node;
        }
    }

    private chosen(only: Uint8Array[] | null): Int32Array {
        const found = new Int32Array(this.leaf.length);
        const before = this.stacks.leaf[0]!.length;
        let count = 0;
        for (let context = 0; context < found.length; context++)
            if (!only || (context < before ? only[0]![context] : only[1]![context - before]))
                found[count++] = context;
        return found.subarray(0, count);
    }

    get names(): string[] {
        return this.stacks.names;
    }

    /* The nodes below NODE. */
    children(node: number): readonly number[] {
        return (this.children_[node] ??= (this.inverted ? this.callers(node) : this.callees(node)).map(({ number, items }) => {
            this.parent.push(node);
            this.name.push(number);
            this.depth.push(this.depth[node]! + 1);
            this.children_.push(null);
            return this.items.push(items) - 1;
        }));
    }

    private callees(node: number): ReturnType<Groups['end']> {
        const { groups, firstChild, nextSibling } = this;
        const { name } = this.stacks;
        for (const item of this.items[node]!)
            for (let child = firstChild[item]!; child >= 0; child = nextSibling[child]!)
                groups.add(name[child]!);
        groups.begin();
        for (const item of this.items[node]!)
            for (let child = firstChild[item]!; child >= 0; child = nextSibling[child]!)
                groups.put(name[child]!, child);
        return groups.end();
    }

    private callers(node: number): ReturnType<Groups['end']> {
        const { groups, cursor } = this;
        const { name, parent } = this.stacks;
        for (const context of this.items[node]!) {
            const at = cursor[context]! < 0 ? this.leaf[context]! : parent[cursor[context]!]!;
            cursor[context] = at;
            if (at)
                groups.add(name[at]!);
        }
        groups.begin();
        for (const context of this.items[node]!)
            if (cursor[context])
                groups.put(name[cursor[context]!]!, context);
        return groups.end();
    }

    /* The sums of VALUES (by context of a profile) in each subtree, of contexts with a MASK. */
    sums(profile: number, values: Column, mask: Uint8Array | null = null): Sums {
        const leaves = this.stacks.leaf[profile]!;
        const before = profile ? this.stacks.leaf[0]!.length : 0;
        const { parent } = this.stacks;
        const weights = new Float64Array(this.inverted ? this.leaf.length : parent.length);
        for (let context = 0; context < leaves.length; context++)
            if (!mask || mask[context])
                weights[this.inverted ? before + context : leaves[context]!]! += values[context]!;
        for (let node = this.inverted ? 0 : parent.length - 1; node > 0; node--)
            weights[parent[node]!]! += weights[node]!;
        return new Sums(this, weights);
    }

    /* Nodes of the stacks that NODE is made of: at most MOST. */
    nodesOf(node: number, most: number): Iterable<number> {
        const items = this.items[node]!.subarray(0, most);
        return this.inverted ? items.map((context) => {
            let at = this.leaf[context]!;
            for (let up = 1; up < this.depth[node]!; up++)
                at = this.stacks.parent[at]!;
            return at;
        }) : items;
    }

    /* The sum of WEIGHTS over what NODE is made of. */
    total(node: number, weights: Float64Array): number {
        let sum = 0;
        for (const item of this.items[node]!)
            sum += weights[item]!;
        return sum;
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
            const child = this.children(node).find((each) => this.names[this.name[each]!] === text);
            if (child === undefined)
                return node;
            node = child;
        }
        return node;
    }
}

/* A value at every node, worked out when it is asked for. */
export class Sums {
    private readonly known: number[] = [];

    constructor(
        private readonly tree: CallTree,
        private readonly weights: Float64Array,
    ) {}

    of(node: number): number {
        return (this.known[node] ??= this.tree.total(node, this.weights));
    }

    /* What stands at the node itself. */
    own(node: number): number {
        return this.tree.children(node).reduce((rest, child) => rest - this.of(child), this.of(node));
    }
}
