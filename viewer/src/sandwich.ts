/* sandwich.ts - one function: what calls it, upwards, and what it calls, downwards, over any value. Recursion is
 * folded: a function is on a path once, and every stack counts once. */
import { add, h, name, replace, searching, select } from './dom';
import * as format from './format';
import { cum, framesBy, self } from './functions';
import { List } from './list';
import { measure as measureOf, told, usual, type Measure } from './measures';
import { tell } from './shell';
import * as state from './state';
import { foldedOf, stacksOf, withoutDetours, type Stacks } from './stacks';
import { CallTree, type Sums } from './tree';
import type { Profile } from './model';
import type { Page, View } from './view';

const suggested = 12; // functions that a search names

/* The stacks through a function, divided at its outermost call: what is above it, from the caller on, and what is
 * below. The node 0 of both is the function. THROUGH: by context, whether the function is on its stack. */
function divide(profile: Profile, chosen: number): { above: Stacks; below: Stacks; through: Uint8Array } {
    const stacks = stacksOf(profile);
    const folded = foldedOf(profile);
    const count = stacks.parent.length;
    const at = new Int32Array(count); // by node: the outermost call on the way to it; 0: there is none
    const number = new Int32Array(count); // of a node below; 0: the function, also where it has called itself
    const parents = [0];
    const names = [-1];
    for (let node = 1; node < count; node++) {
        const calls = stacks.name[node] === chosen;
        at[node] = at[stacks.parent[node]!]! || (calls ? node : 0);
        if (!at[node] || calls)
            continue;
        number[node] = names.push(stacks.name[node]!) - 1;
        parents.push(number[stacks.parent[node]!]!);
    }
    const name = Int32Array.from(names);
    const { of, above } = withoutDetours(Int32Array.from(parents), name);
    const leaf = stacks.leaf[0]!;
    const caller = (node: number) => (at[node] ? stacks.parent[at[node]!]! : 0);
    return {
        above: { ...folded, leaf: [leaf.map((node) => folded.to?.[caller(node)] ?? caller(node))] },
        below: { ...stacks, frame: null, parent: above, name, leaf: [leaf.map((node) => of[number[node]!]!)] },
        through: Uint8Array.from(leaf, (node) => (at[node] ? 1 : 0)),
    };
}

/* A tree as a table: a row for each node, those below an open one under it. */
class TreeTable {
    private rows: number[] = [];
    private readonly opened = new Set<number>();
    private readonly list: List;

    constructor(
        private readonly tree: CallTree,
        private readonly sums: Sums,
        private readonly whole: number,
        private readonly measure: Measure,
        private readonly own: boolean, // what stands at a node itself is shown
        label: string,
    ) {
        const head = h('div', { class: 'row list-head', role: 'row', 'aria-rowindex': 1 },
            ['total', 'share', ...(own ? ['self'] : [])].map((text) => h('div', { class: 'cell', role: 'columnheader' }, text)),
            h('div', { class: 'cell name-cell', role: 'columnheader' }, own ? 'function' : 'caller'));
        this.list = new List({ label, rowHeight: 24, columns: own ? 4 : 3, head, fill: (row, index) => this.fill(row, this.rows[index]!), activated: (index) => this.turn(index),
            key: (event, index) => this.keyDown(event, index) });
        this.list.element.setAttribute('role', 'treegrid');
        this.opened.add(0);
        /* As long as there is one way only, it is shown. */
        for (let node = 0; ;) {
            const below = this.below(node);
            this.opened.add(node);
            if (below.length !== 1)
                break;
            node = below[0]!;
        }
        this.update();
    }

    get element(): HTMLElement {
        return this.list.element;
    }

    get filled(): boolean {
        return this.rows.length > 0;
    }

    private below(node: number): number[] {
        return this.tree.children(node).filter((each) => this.sums.of(each) > 0).sort((a, b) => this.sums.of(b) - this.sums.of(a));
    }

    private update(): void {
        this.rows = [];
        const put = (node: number) => {
            for (const each of this.below(node)) {
                this.rows.push(each);
                if (this.opened.has(each))
                    put(each);
            }
        };
        put(0);
        const { active } = this.list;
        this.list.reset(this.rows.length);
        this.list.active = Math.min(active, Math.max(0, this.rows.length - 1));
        this.list.refresh();
    }

    private turn(index: number): void {
        const node = this.rows[index]!;
        if (!this.below(node).length)
            return;
        if (!this.opened.delete(node))
            this.opened.add(node);
        this.update();
    }

    private keyDown(event: KeyboardEvent, index: number): boolean {
        if (event.key !== 's')
            return false;
        state.go('sandwich', { f: this.tree.names[this.tree.name[this.rows[index]!]!]!, value: this.measure.key });
        return true;
    }

    private fill(row: HTMLElement, node: number): void {
        const { tree, sums, measure } = this;
        const text = tree.names[tree.name[node]!]!;
        const value = sums.of(node);
        const more = this.below(node).length;
        const depth = tree.depth[node]!;
        if (more)
            row.setAttribute('aria-expanded', String(this.opened.has(node)));
        row.setAttribute('aria-level', String(depth));
        const cell = h('div', { class: 'cell bar', role: 'gridcell' }, measure.format(value));
        cell.style.setProperty('--share', `${Math.min(100, (value / (this.whole || 1)) * 100)}%`);
        const own = this.own ? sums.own(node) : 0;
        const title = h('div', { class: 'cell name-cell', role: 'gridcell' },
            h('span', { class: 'twig', 'aria-hidden': 'true' }, more ? (this.opened.has(node) ? '▾' : '▸') : ''),
            h('a', { href: state.link('sandwich', { f: text, value: measure.key }), tabindex: -1 }, name(text)));
        title.style.paddingLeft = `${12 + 16 * Math.min(30, depth - 1)}px`;
        add(row, cell, h('div', { class: 'cell', role: 'gridcell' }, format.percent(value, this.whole) || '0 %'),
            this.own ? h('div', { class: own ? 'cell' : 'cell none', role: 'gridcell' }, measure.format(own)) : null, title);
    }
}

class Sandwich {
    private readonly search: HTMLInputElement;
    private readonly matches = h('ul', { class: 'matches' });
    private readonly body = h('div', { class: 'sandwich-body' });

    constructor(
        private readonly profile: Profile,
        root: HTMLElement,
    ) {
        this.search = h('input', { type: 'search', id: 'search', placeholder: 'Search functions', 'aria-label': 'Search functions', spellcheck: 'false', autocomplete: 'off', ...searching(() => this.find()) });
        const values = told(profile).filter((each) => each.additive);
        const wanted = state.get('value');
        if (wanted && !values.some((each) => each === measureOf(wanted)))
            tell(`This profile has no value “${wanted}” that adds up: ${this.measure.title.toLowerCase()} is shown.`);
        add(root, h('div', { class: 'tools' }, this.search, h('span', { class: 'space' }),
            select('Value', values.map((each) => [each.key, each.title] as const), this.measure.key, (value) => { state.note({ value }); this.find(); this.show(); })), this.matches, this.body);
        this.show();
    }

    private get measure(): Measure {
        const wanted = measureOf(state.get('value'));
        return wanted?.additive && wanted.values(this.profile) ? wanted : usual(this.profile);
    }

    /* Values without pools, which are parts of other blocks. */
    private values(): Float64Array {
        const values = this.measure.values(this.profile)!;
        const pool = this.profile.column('pool');
        return Float64Array.from(values, (value, context) => (pool?.[context] ? 0 : value));
    }

    private list(found: number[], sums: Float64Array): void {
        const { key, format: said } = this.measure;
        replace(this.matches, found.slice(0, suggested).map((index) => h('li', null,
            h('a', { href: state.link('sandwich', { f: this.profile.names[index]!, value: state.get('value') ? key : '' }) }, name(this.profile.names[index]!)), ` ${said(sums[index]!)}`)),
        found.length > suggested ? h('li', null, `… and ${format.count(found.length - suggested)} more`) : null);
    }

    private find(): void {
        const word = this.search.value.trim().toLowerCase();
        replace(this.matches);
        if (!word)
            return;
        const sums = cum(framesBy(this.profile, 'function'), this.values(), null);
        const found = this.profile.names.map((_, index) => index).filter((index) => this.profile.names[index]!.toLowerCase().includes(word)).sort((a, b) => sums[b]! - sums[a]!);
        this.list(found, sums);
        if (!found.length)
            replace(this.matches, h('li', null, 'No function of this profile has that in its name.'));
    }

    private show(): void {
        const { profile, measure } = this;
        const wanted = state.get('f');
        const chosen = profile.names.indexOf(wanted);
        if (chosen < 0) {
            if (wanted)
                tell(`This profile has no function “${wanted}”.`);
            const sums = self(framesBy(profile, 'function'), this.values(), null);
            replace(this.body, h('p', { class: 'summary' }, `Search a function, or choose one of those that allocate most (${measure.title.toLowerCase()}, self). `, h('a', { href: state.link('contexts', { by: 'function' }) }, 'All functions')));
            this.list([...sums.keys()].filter((index) => sums[index]! > 0).sort((a, b) => sums[b]! - sums[a]!), sums);
            return;
        }
        const values = this.values();
        const { above, below, through } = divide(profile, chosen);
        const frames = framesBy(profile, 'function');
        const all = values.reduce((sum, value) => sum + value, 0);
        const masked = values.map((value, context) => (through[context] ? value : 0));
        const total = masked.reduce((sum, value) => sum + value, 0);
        const { leaf, name: names } = frames.stacks;
        const own = masked.reduce((sum, value, context) => (names[leaf[0]![context]!] === chosen ? sum + value : sum), 0);
        const callers = new CallTree(above, true);
        const callees = new CallTree(below, false);
        const counts = through.reduce((sum, each) => sum + each, 0);
        const where = frames.where(chosen);
        const top = new TreeTable(callers, callers.sums(0, masked), total, measure, false, 'Callers');
        const bottom = new TreeTable(callees, callees.sums(0, masked), total, measure, true, 'Callees');
        const nothing = (text: string) => h('p', { class: 'summary' }, text);
        replace(this.body,
            h('section', null, h('h3', null, 'Called by'), top.filled ? top.element : nothing('Nothing above it is on any stack.')),
            h('section', { class: 'chosen' }, h('h3', null, name(wanted, 'name whole'), where ? h('span', { class: 'place' }, h('bdi', null, where)) : null),
                h('p', { class: 'summary' }, `${measure.title}: total (cum) ${measure.format(total)} (${format.percent(total, all) || '0 %'}), self ${measure.format(own)} (${format.percent(own, all) || '0 %'}); on ${format.plural(counts, 'call stack')}. `,
                    h('a', { href: state.link('flame', { focus: wanted, value: measure.key }) }, 'Flame graph'), ' ', h('a', { href: state.link('contexts', { q: `"${wanted.replaceAll('"', '')}"` }) }, 'Its places'))),
            h('section', null, h('h3', null, 'Calls'), bottom.filled ? bottom.element : nothing('It calls nothing that allocates.')));
    }
}

export const sandwich: View = {
    key: 'sandwich',
    title: 'Sandwich',
    missing: (page: Page) => (page.profile.count ? null : 'This profile has no call stacks: nothing was allocated, or the allocations were lost.'),
    show: (page: Page, root: HTMLElement) => void new Sandwich(page.profile, root),
};
