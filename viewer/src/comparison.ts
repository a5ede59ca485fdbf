/* comparison.ts - what heapwise diff says of a profile and its baseline (src/report/page/page_comparison.c): the page
 * compares nothing itself. */
import { decode, visible, type Column, type Columns } from './decode';
import * as format from './format';
import { ModuleKind } from './model';
import type { Stacks } from './stacks';

export interface Compared {
    key: string;
    title: string;
    format: (value: number) => string;
    /* Of the processes. */
    before: number;
    after: number;
}

const formats: Record<string, (value: number) => string> = { bytes: format.bytes, nanoseconds: format.duration };
const nothing = new Float64Array(0);

export class Comparison {
    readonly measures: Compared[];
    readonly usual: string;
    readonly notes: string[];
    readonly count: number; // of places
    readonly stacks: Stacks; // as they are matched; of the new profile and the old one

    private constructor(
        private readonly columns: Columns,
        strings: string[],
        text: string,
    ) {
        const told = JSON.parse(text) as { usual: string; measures: { key: string; title: string; unit: string; old: number; new: number }[] };
        this.usual = told.usual;
        this.measures = told.measures.map((each) => ({ key: each.key, title: visible(each.title), format: formats[each.unit] ?? format.count, before: each.old, after: each.new }));
        this.notes = Array.from(this.need('note.text'), (number) => strings[number] ?? '');
        this.count = this.need('place.new_context').length;
        const name = Int32Array.from(this.need('path.name'));
        name[0] = -1;
        this.stacks = {
            names: Array.from(this.need('name.text'), (number) => strings[number] ?? ''),
            system: Uint8Array.from(this.need('name.kind'), (kind) => (kind === ModuleKind.Program ? 0 : 1)),
            parent: Int32Array.from(this.need('path.above'), (distance, node) => Math.max(0, node - distance)),
            name,
            module: null,
            frame: null,
            leaf: [Int32Array.from(this.need('path.new_leaf')), Int32Array.from(this.need('path.old_leaf'))],
        };
    }

    static async read(base64: string): Promise<Comparison> {
        const parts = await decode(base64);
        const text = parts.texts.get('comparison');
        if (!text)
            throw new Error('there is no comparison in this page');
        return new Comparison(parts.columns, parts.strings, text);
    }

    private need(name: string): Column {
        return this.columns.get(name) ?? nothing;
    }

    /* By place: a value in the baseline and now. */
    before(key: string): Column {
        return this.need(`value.old_${key}`);
    }

    after(key: string): Column {
        return this.need(`value.new_${key}`);
    }

    /* The context that shows a place: in the new profile, in the old one; -1 where it is not. */
    contextNow(place: number): number {
        return (this.need('place.new_context')[place] ?? 0) - 1;
    }

    contextBefore(place: number): number {
        return (this.need('place.old_context')[place] ?? 0) - 1;
    }

    /* How many call stacks of a profile are this place. */
    contextsNow(place: number): number {
        return this.need('place.new_contexts')[place] ?? 0;
    }

    contextsBefore(place: number): number {
        return this.need('place.old_contexts')[place] ?? 0;
    }

    /* Its stack, as a node of `stacks`. */
    leaf(place: number): number {
        const now = this.contextNow(place);
        return (now >= 0 ? this.stacks.leaf[0]![now] : this.stacks.leaf[1]![this.contextBefore(place)]) ?? 0;
    }
}
