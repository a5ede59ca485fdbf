/* sandwich.ts - one function: what calls it, upwards, and what it calls, downwards, over any value. Recursion is
 * folded: a function is on a path once, and every stack counts once. */
import { add, h, name, replace, searching, select } from './dom';
import * as format from './format';
import { cum, framesBy, self } from './functions';
import { List } from './list';
import { measure as measureOf, told, usual, wholeOf, type Measure } from './measures';
import { tell } from './shell';
import { hasSource } from './source';
import * as state from './state';
import { foldedOf, headsOf, stacksOf, withoutDetours, type Stacks } from './stacks';
import { CallTree, type Sums } from './tree';
import type { Profile } from './model';
import type { Page, View } from './view';

const suggested = 12; // functions that a search names

/* The stacks through a function, divided at its outermost call: what is above it, from the caller on, and what is
 * below. The node 0 of both is the function. FOLDED: the stacks without recursion; HEADS, by context: the frame that
 * names the place. THROUGH: by profile and context, whether the function is on its stack; LEAF: where the stack ends, at
 * the frame that names the place unless the function is library code below it. */
function divide(stacks: Stacks, folded: Stacks & { to: Int32Array | null }, heads: Int32Array | null, chosen: number): { above: Stacks; below: Stacks; through: Uint8Array[]; leaf: Int32Array[] } {
    const count = stacks.parent.length;
    const at = new Int32Array(count); // by node: the outermost call on the way to it; 0: there is none
    const number = new Int32Array(count); // of a node below; 0: the function, also where it has called itself
    const parents = new Int32Array(count);
    const names = new Int32Array(count).fill(-1, 0, 1);
    let size = 1;
    for (let node = 1; node < count; node++) {
        const up = stacks.parent[node]!;
        const calls = stacks.name[node] === chosen;
        at[node] = at[up]! || (calls ? node : 0);
        if (!at[node] || calls)
            continue;
        parents[size] = number[up]!;
        names[size] = stacks.name[node]!;
        number[node] = size++;
    }
    const name = names.slice(0, size);
    const { of, above } = withoutDetours(parents.slice(0, size), name);
    const found: { callers: Int32Array; below: Int32Array; through: Uint8Array; leaf: Int32Array }[] = stacks.leaf.map((each) => {
        const [callers, below, leaf] = [new Int32Array(each.length), new Int32Array(each.length), new Int32Array(each)];
        const through = new Uint8Array(each.length);
        for (let context = 0; context < each.length; context++) {
            if (heads && at[heads[context]!])
                leaf[context] = heads[context]!;
            const node = leaf[context]!;
            below[context] = of[number[node]!]!;
            if (!at[node])
                continue;
            through[context] = 1;
            const caller = stacks.parent[at[node]!]!;
            callers[context] = folded.to ? folded.to[caller]! : caller;
        }
        return { callers, below, through, leaf };
    });
    return {
        above: { ...folded, leaf: found.map(({ callers }) => callers) },
        below: { ...stacks, frame: null, parent: above, name, leaf: found.map(({ below }) => below) },
        through: found.map(({ through }) => through),
        leaf: found.map(({ leaf }) => leaf),
    };
}

/* A tree as a table: a row for each node, those below an open one under it. */
class TreeTable {
    private rows: number[] = [];
    private readonly found: number[][] = []; // by node: those below it
    private readonly opened = new Set<number>();
    private readonly list: List;

    constructor(
        private readonly tree: CallTree,
        private readonly sums: Sums,
        private readonly old: Sums | null, // of the baseline
        private readonly whole: number,
        private readonly measure: Measure,
        private readonly own: boolean, // what stands at a node itself is shown
        label: string,
    ) {
        const head = h('div', { class: 'row list-head', role: 'row', 'aria-rowindex': 1 },
            ['total', 'share', ...(own ? ['self'] : []), ...(old ? ['change'] : [])].map((text) => h('div', { class: 'cell', role: 'columnheader' }, text)),
            h('div', { class: 'cell name-cell', role: 'columnheader' }, own ? 'function' : 'caller'));
        this.list = new List({ label, rowHeight: 24, columns: (own ? 4 : 3) + (old ? 1 : 0), head, fill: (row, index) => this.fill(row, this.rows[index]!), activated: (index) => this.turn(index),
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
        const size = (each: number) => Math.max(this.sums.of(each), this.old?.of(each) ?? 0);
        return (this.found[node] ??= this.tree.children(node).filter((each) => size(each) > 0).sort((a, b) => size(b) - size(a)));
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

    /* What has changed since the baseline. */
    private changed(node: number): HTMLElement | null {
        if (!this.old)
            return null;
        const [before, now] = [this.old.of(node), this.sums.of(node)];
        return h('div', { class: `cell ${now > before ? 'more' : now < before ? 'less' : 'none'}`, role: 'gridcell', title: `before ${this.measure.format(before)}` }, format.change(now - before, this.measure.format));
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
            this.own ? h('div', { class: own ? 'cell' : 'cell none', role: 'gridcell' }, measure.format(own)) : null, this.changed(node), title);
    }
}

class Sandwich {
    private readonly search: HTMLInputElement;
    private readonly matches = h('ul', { class: 'matches' });
    private readonly body = h('div', { class: 'sandwich-body' });

    constructor(
        private readonly page: Page,
        root: HTMLElement,
    ) {
        const { profile } = this;
        this.search = h('input', { type: 'search', id: 'search', placeholder: 'Search functions', 'aria-label': 'Search functions', spellcheck: 'false', autocomplete: 'off', ...searching(() => this.find()) });
        const values = told(profile).filter((each) => each.additive);
        const wanted = state.get('value');
        if (wanted && !values.some((each) => each === measureOf(wanted)))
            tell(`This profile has no value “${wanted}” that adds up: ${this.measure.title.toLowerCase()} is shown.`);
        add(root, h('div', { class: 'tools' }, this.search, h('span', { class: 'space' }),
            select('Value', values.map((each) => [each.key, each.title] as const), this.measure.key, (value) => { state.note({ value }); this.find(); this.show(); })), this.matches, this.body);
        this.show();
    }

    private get profile(): Profile {
        return this.page.profile;
    }

    private get measure(): Measure {
        const wanted = measureOf(state.get('value'));
        return wanted?.additive && wanted.values(this.profile) ? wanted : usual(this.profile);
    }

    /* Values without pools, which are parts of other blocks. */
    private values(profile = this.profile): Float64Array {
        const values = this.measure.values(profile) ?? new Float64Array(profile.count);
        const pool = profile.column('pool');
        return !pool?.some((each) => each > 0) ? values : Float64Array.from(values, (value, context) => (pool?.[context] ? 0 : value));
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
        const sums = cum(framesBy(this.profile, 'every'), this.values(), null);
        const found = this.profile.names.map((_, index) => index).filter((index) => this.profile.names[index]!.toLowerCase().includes(word)).sort((a, b) => sums[b]! - sums[a]!);
        this.list(found, sums);
        if (!found.length)
            replace(this.matches, h('li', null, 'No function of this profile has that in its name.'));
    }

    private show(): void {
        const { profile, measure } = this;
        const { baseline, comparison } = this.page;
        const wanted = state.get('f');
        /* Stacks as they are matched, if the function is on them; those of a profile have no place for a baseline. */
        const matched = baseline && comparison?.stacks.names.includes(wanted) ? comparison.stacks : null;
        const { names: allNames } = matched ?? stacksOf(profile);
        const chosen = allNames.indexOf(wanted);
        if (chosen < 0) {
            if (wanted)
                tell(`This profile has no function “${wanted}”.`);
            const sums = self(framesBy(profile, 'function'), this.values(), null);
            replace(this.body, h('p', { class: 'summary' }, `Search a function, or choose one of those that allocate most (${measure.title.toLowerCase()}, self). `, h('a', { href: state.link('contexts', { by: 'function' }) }, 'All functions')));
            this.list([...sums.keys()].filter((index) => sums[index]! > 0).sort((a, b) => sums[b]! - sums[a]!), sums);
            return;
        }
        const values = this.values();
        const stacks = matched ?? stacksOf(profile);
        const { above, below, through, leaf } = divide(stacks, matched ? { ...matched, to: null } : foldedOf(profile), matched ? null : headsOf(profile), chosen);
        const before = matched && this.values(baseline!).map((value, context) => (through[1]![context] ? value : 0));
        const sumBefore = before?.reduce((sum, value) => sum + value, 0) ?? 0;
        const frames = framesBy(profile, 'function');
        const all = wholeOf(profile, measure);
        const masked = new Float64Array(values.length);
        let [total, own, counts] = [0, 0, 0];
        for (let context = 0; context < values.length; context++) {
            if (!through[0]![context])
                continue;
            const value = (masked[context] = values[context]!);
            total += value;
            own += stacks.name[leaf[0]![context]!] === chosen ? value : 0;
            counts += !profile.unknown || value ? 1 : 0;
        }
        const callers = new CallTree(above, true, through);
        const callees = new CallTree(below, false);
        const shown = profile.names.indexOf(wanted);
        const where = shown < 0 ? '' : frames.where(shown);
        const top = new TreeTable(callers, callers.sums(0, masked), before && callers.sums(1, before), Math.max(total, sumBefore), measure, false, 'Callers');
        const bottom = new TreeTable(callees, callees.sums(0, masked), before && callees.sums(1, before), Math.max(total, sumBefore), measure, true, 'Callees');
        const nothing = (text: string) => h('p', { class: 'summary' }, text);
        replace(this.body,
            h('section', null, h('h3', null, 'Called by'), top.filled ? top.element : nothing('Nothing above it is on any stack.')),
            h('section', { class: 'chosen' }, h('h3', null, name(wanted, 'name whole'), where ? h('span', { class: 'place' }, h('bdi', null, where)) : null),
                h('p', { class: 'summary' }, `${measure.title}: total (cum) ${measure.format(total)} (${format.percent(total, all) || '0 %'}${matched ? `; before ${measure.format(sumBefore)}, ${format.change(total - sumBefore, measure.format)}` : ''}), self ${measure.format(own)} (${format.percent(own, all) || '0 %'}); on ${format.plural(counts, 'call stack')}. `,
                    h('a', { href: state.link('flame', { focus: wanted, value: measure.key }) }, 'Flame graph'), ' ', h('a', { href: state.link('contexts', { q: `"${wanted.replaceAll('"', '')}"` }) }, 'Its places'), ' ', hasSource(profile) ? h('a', { href: state.link('source', { f: wanted, value: measure.key }) }, 'Source') : null)),
            h('section', null, h('h3', null, 'Calls'), bottom.filled ? bottom.element : nothing('It calls nothing that allocates.')));
    }
}

export const sandwich: View = {
    key: 'sandwich',
    title: 'Sandwich',
    timed: true,
    missing: (page: Page) => (page.profile.count ? null : 'This profile has no call stacks: nothing was allocated, or the allocations were lost.'),
    show: (page: Page, root: HTMLElement) => void new Sandwich(page, root),
};
