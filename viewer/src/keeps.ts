/* keeps.ts - who keeps the memory alive: downwards from variables and threads, as an icicle; upwards from places, as a
 * list. */
import { add, h, name, replace, searching, select } from './dom';
import * as format from './format';
import { keepsOf, type Box, type Keeps, type Place, type Source } from './keeps_model';
import { List } from './list';
import type { Profile } from './model';
import { tell } from './shell';
import * as state from './state';
import type { Page, View } from './view';

const narrowest = 4; // pixels of a box
const depth = 6; // rows of the drawing

interface Drawn {
    box: Box; // of what is too narrow: the one above
    row: number;
    x: number;
    width: number; // both 0 to 1
    hidden: number; // 0: a box; else so many that are too narrow, or -1: what the page does not have
}

/* Boxes from TOP on, row after row. Nothing narrower than LEAST. */
function layout(top: Box, least: number): Drawn[] {
    const drawn: Drawn[] = [{ box: top, row: 0, x: 0, width: 1, hidden: 0 }];
    for (let at = 0; at < drawn.length; at++) {
        const { box, row, x: start, width, hidden } = drawn[at]!;
        if (hidden || row + 1 === depth || !box.bytes)
            continue;
        let x = start, narrow = 0, shown = 0;
        for (const below of box.below) {
            const share = (below.bytes / box.bytes) * width;
            shown += below.bytes;
            if (share < least)
                narrow++;
            else {
                drawn.push({ box: below, row: row + 1, x, width: share, hidden: 0 });
                x += share;
            }
        }
        const rest = start + width - x;
        if (rest >= least && (narrow || shown < box.bytes) && box.below.length)
            drawn.push({ box, row: row + 1, x, width: rest, hidden: narrow || -1 });
    }
    return drawn;
}

function keeperOf(box: Box): Box {
    return box.kind === 'place' && box.parent ? keeperOf(box.parent) : box;
}

class KeepsView {
    private readonly keeps: Keeps;
    private readonly cells = h('div', { class: 'icicle', role: 'tree', tabindex: 0, 'aria-label': 'Who keeps the memory', 'aria-describedby': 'keeps-said' });
    private readonly crumbs = h('div', { class: 'crumbs' });
    private readonly said = h('div', { class: 'flame-said', id: 'keeps-said', role: 'status' });
    private readonly summary = h('p', { class: 'summary', role: 'status' });
    private readonly search = h('input', { type: 'search', id: 'search', placeholder: 'Filter places (/)', 'aria-label': 'Filter places', ...searching(() => { state.note({ q: this.search.value.trim() }); this.fillList(); }) });
    private readonly list: List;
    private readonly resized: ResizeObserver;
    private top: Box;
    private selected: Box;
    private drawn: Drawn[] = [];
    private width = 0;
    private rows: { place: Place; bytes: number; blocks: number }[] = [];

    constructor(
        private readonly profile: Profile,
        root: HTMLElement,
    ) {
        this.keeps = keepsOf(profile)!;
        this.top = this.wanted();
        this.selected = this.top;
        this.search.value = state.get('q');
        const head = h('div', { class: 'row list-head', role: 'row', 'aria-rowindex': 1 },
            [['kept here', 'Bytes of the place that the chosen keeper keeps'], ['blocks', 'Blocks of these'], ['keeps', 'What could not be reached without the blocks of this place: at least so much']].map(([text, title]) => h('div', { class: 'cell', role: 'columnheader', title }, text)),
            h('div', { class: 'cell name-cell', role: 'columnheader' }, 'place'));
        this.list = new List({ label: 'Places', rowHeight: 26, columns: 4, head, fill: (row, index) => this.fill(row, index), open: (index) => this.details(this.rows[index]!.place), activated: (index) => this.noteOpen(index) });
        add(root, this.crumbs, this.cells, this.said,
            h('div', { class: 'tools' }, this.search, h('span', { class: 'space' }), select('Order', [['', 'kept here'], ['keeps', 'what they keep']], state.get('sort'), (value) => { state.note({ sort: value, at: '' }); this.fillList(); })),
            this.summary, this.list.element);
        this.cells.addEventListener('keydown', (event) => this.keyDown(event));
        this.cells.addEventListener('click', (event) => this.click(event));
        this.resized = new ResizeObserver(() => this.cells.clientWidth !== this.width && this.draw());
        this.resized.observe(this.cells);
        this.show();
        const at = state.get('at');
        const index = this.rows.findIndex(({ place }) => String(this.idOf(place)) === at);
        if (index >= 0)
            this.open(index);
        else if (at)
            tell('This page does not say who keeps the place in the address.');
    }

    end(): void {
        this.resized.disconnect();
    }

    private idOf(place: Place): number {
        return this.profile.column('id')![place.context]!;
    }

    private wanted(): Box {
        const id = state.get('keeper');
        const found = id ? this.keeps.find(`k${id}`) : null;
        if (id && !found)
            tell(`This page has no keeper ${id}: all are shown.`);
        return found ?? this.keeps.all;
    }

    /* ---- the drawing ---- */

    private show(): void {
        this.draw();
        this.showCrumbs();
        this.fillList();
        this.tell();
    }

    private draw(): void {
        this.width = this.cells.clientWidth;
        this.drawn = layout(this.top, narrowest / Math.max(200, this.width));
        const rows = Math.max(...this.drawn.map((each) => each.row)) + 1;
        this.cells.style.setProperty('--rows', String(rows));
        replace(this.cells, this.drawn.map((each, index) => this.cell(each, index)));
        this.mark();
    }

    private cell({ box, row, x, width, hidden }: Drawn, index: number): HTMLElement {
        const text = hidden ? (hidden < 0 ? 'other places' : `${format.count(hidden)} smaller`) : box.name;
        const cell = h('div', { class: `keep-box ${hidden ? 'rest' : box.kind}`, role: 'treeitem', id: `keep${index}`, 'aria-level': row + 1, 'aria-selected': 'false', 'data-index': index,
            title: hidden ? text : `${text}: ${this.share(box)}` }, width * this.width > 24 ? h('bdi', null, text) : null,
            !hidden && width * this.width > 190 ? h('span', { class: 'amount' }, format.bytes(box.bytes)) : null);
        cell.style.left = `${x * 100}%`;
        cell.style.width = `${width * 100}%`;
        cell.style.top = `calc(var(--keep-row) * ${row})`;
        if (width * this.width <= 24)
            cell.setAttribute('aria-label', text);
        return cell;
    }

    private mark(): void {
        const index = this.drawn.findIndex((each) => each.box === this.selected && !each.hidden);
        this.cells.querySelectorAll('[aria-selected=true]').forEach((cell) => cell.setAttribute('aria-selected', 'false'));
        this.cells.querySelector(`#keep${index}`)?.setAttribute('aria-selected', 'true');
        if (index >= 0)
            this.cells.setAttribute('aria-activedescendant', `keep${index}`);
        else
            this.cells.removeAttribute('aria-activedescendant');
    }

    private showCrumbs(): void {
        const steps: Box[] = [];
        for (let box: Box | null = this.top; box && box !== this.keeps.all; box = box.parent)
            steps.unshift(box);
        replace(this.crumbs, h('button', { type: 'button', onclick: () => this.zoomTo(this.keeps.all), disabled: this.top === this.keeps.all }, 'All'),
            steps.map((box) => [' › ', h('button', { type: 'button', onclick: () => this.zoomTo(box) }, name(box.name))]).flat());
    }

    private share(box: Box): string {
        return `${format.bytes(box.bytes)} (${format.percent(box.bytes, this.keeps.bytes) || '0 %'}) in ${format.plural(box.blocks, 'block')}`;
    }

    private tell(): void {
        const box = this.selected;
        const what = box === this.keeps.all ? 'can be reached by the program when it is searched'
            : box.kind === 'place' ? `of ${box.place < 0 ? format.plural(box.below.length, 'place') : 'this place'} are kept by ${keeperOf(box).name}`
                : box.kind === 'several' || box.kind === 'several_threads' ? 'are kept by several: none keeps these blocks alone'
                    : 'could not be reached any more without it';
        replace(this.said,
            h('p', null, name(box.name), box.module ? ` (${box.module})` : '', box.type ? h('span', { class: 'faint' }, ' → ', name(box.type)) : null, `: ${this.share(box)} ${what}`),
            h('p', { class: 'links' },
                box.keeper >= 0 && box !== this.top ? h('button', { type: 'button', onclick: () => this.zoomTo(box) }, 'Zoom') : null,
                box.place >= 0 ? h('button', { type: 'button', onclick: () => this.showPlace(box.place) }, 'What points to it') : null,
                box.place >= 0 ? h('a', { href: state.link('contexts', { by: 'stack', at: this.idOf(this.keeps.places[box.place]!) }) }, 'Call stack') : null),
            this.keeps.warnings.length && box === this.keeps.all ? h('p', { class: 'source' }, this.keeps.warnings.join(' ')) : null);
    }

    private zoomTo(box: Box): void {
        if (box !== this.top)
            state.step({ keeper: box === this.keeps.all ? '' : box.id.slice(1), at: '' });
        this.top = this.selected = box;
        this.show();
    }

    /* A keeper is zoomed into, a place is shown in the list. */
    private choose(box: Box): void {
        if (box.place >= 0) {
            this.selected = box;
            this.mark();
            this.tell();
            this.showPlace(box.place);
        } else if (box.kind === 'place') { // several of one name
            this.selected = box;
            this.mark();
            this.tell();
            this.search.value = box.name;
            state.note({ q: box.name, at: '' });
            this.fillList();
        } else
            this.zoomTo(box);
    }

    private click(event: MouseEvent): void {
        const cell = (event.target as HTMLElement).closest<HTMLElement>('.keep-box');
        if (cell)
            this.choose(this.drawn[Number(cell.dataset.index)]!.box);
    }

    private keyDown(event: KeyboardEvent): void {
        if (event.ctrlKey || event.metaKey || event.altKey)
            return;
        const at = this.drawn.findIndex((each) => each.box === this.selected && !each.hidden);
        const row = this.drawn[at]?.row ?? 0;
        const beside = this.drawn.filter((each) => each.row === row && !each.hidden);
        const index = beside.findIndex((each) => each.box === this.selected);
        const moves: Record<string, Box | null | undefined> = {
            ArrowLeft: beside[index - 1]?.box, ArrowRight: beside[index + 1]?.box,
            ArrowUp: this.selected === this.top ? null : this.selected.parent,
            ArrowDown: this.drawn.find((each) => each.row === row + 1 && !each.hidden && each.box.parent === this.selected)?.box,
        };
        if (event.key in moves) {
            this.selected = moves[event.key] ?? this.selected;
            this.mark();
            this.tell();
        } else if (event.key === 'Enter')
            this.choose(this.selected);
        else if (event.key === 'Backspace')
            this.zoomTo(this.top.parent ?? this.keeps.all);
        else if (event.key === '0' || (event.key === 'Escape' && this.top !== this.keeps.all))
            this.zoomTo(this.keeps.all);
        else
            return;
        event.preventDefault();
    }

    /* ---- places ---- */

    private fillList(): void {
        const { places, all } = this.keeps;
        const sums = new Map<number, { bytes: number; blocks: number }>();
        const put = (box: Box): void => {
            if (box.place >= 0) {
                const sum = sums.get(box.place) ?? { bytes: 0, blocks: 0 };
                sums.set(box.place, { bytes: sum.bytes + box.bytes, blocks: sum.blocks + box.blocks });
            }
            box.below.forEach(put);
        };
        if (this.top !== all)
            put(this.top);
        const word = this.search.value.trim().toLowerCase();
        const byKept = state.get('sort') === 'keeps';
        this.rows = places.map((place, index) => ({ place, ...(this.top === all ? { bytes: place.bytes, blocks: place.blocks } : sums.get(index) ?? { bytes: 0, blocks: 0 }) }))
            .filter(({ place, bytes }) => bytes > 0 && (!word || this.profile.stack(place.context).some((frame) => frame.name.toLowerCase().includes(word))))
            .sort((a, b) => (byKept ? b.place.retainedBytes - a.place.retainedBytes : 0) || b.bytes - a.bytes);
        const whole = this.top === all ? this.keeps.placeCount : this.rows.length;
        this.summary.textContent = word ? `${format.plural(this.rows.length, 'place')} with “${word}” on the stack`
            : whole > this.rows.length ? `the ${format.count(this.rows.length)} greatest of ${format.plural(whole, 'place')}` : `${format.plural(this.rows.length, 'place')}${this.top === all ? '' : ` kept by ${this.top.name}`}`;
        this.list.reset(this.rows.length);
    }

    private fill(row: HTMLElement, index: number): void {
        const { place, bytes, blocks } = this.rows[index]!;
        const first = h('div', { class: 'cell bar', role: 'gridcell' }, format.bytes(bytes));
        first.style.setProperty('--share', `${Math.min(100, (bytes / (this.top.bytes || 1)) * 100)}%`);
        add(row, first, h('div', { class: 'cell', role: 'gridcell' }, format.count(blocks)), h('div', { class: 'cell', role: 'gridcell' }, format.bytes(place.retainedBytes)),
            h('div', { class: 'cell name-cell', role: 'gridcell' }, name(this.profile.title(place.context)), h('span', { class: 'place' }, this.profile.place(place.context)),
                h('span', { class: 'callers' }, h('bdi', null, `‹ ${this.profile.callers(place.context, 4).join(' ‹ ')}`))));
    }

    private noteOpen(index: number): void {
        state.note({ at: this.list.isOpen(index) ? '' : this.idOf(this.rows[index]!.place) });
    }

    private open(index: number): void {
        this.list.toggle(index, true);
        this.list.moveTo(index);
    }

    /* Opens the place in the list, where it is among those of what is zoomed into. */
    private showPlace(number: number): void {
        const place = this.keeps.places[number]!;
        if (!this.rows.some((each) => each.place === place)) {
            this.search.value = '';
            this.fillList();
        }
        const index = this.rows.findIndex((each) => each.place === place);
        if (index < 0)
            return;
        state.note({ at: this.idOf(place), q: this.search.value });
        this.open(index);
        this.list.element.focus({ preventScroll: false });
    }

    private keeperLink(keeper: number, text: string): HTMLElement {
        const box = keeper < 0 ? null : this.keeps.find(this.keeps.boxes[keeper]!.id);
        return box ? h('a', { href: state.link('keeps', { keeper: box.id.slice(1) }) }, name(box.name)) : name(text || this.keeps.nameOf(keeper));
    }

    /* The caller of a place that is not the only one of its name in a list. */
    private caller(source: Source, all: Source[]): HTMLElement | null {
        const same = source.context >= 0 && all.some((each) => each !== source && each.context >= 0 && this.profile.title(each.context) === this.profile.title(source.context));
        const callers = same ? this.profile.callers(source.context, 3) : [];
        return callers.length ? h('span', { class: 'callers' }, h('bdi', null, `‹ ${callers.join(' ‹ ')}`)) : null;
    }

    private link(source: Source): HTMLElement {
        if (source.context < 0)
            return source.name ? this.keeperLink(source.keeper, source.name) : h('span', null, 'places that are not in this page');
        const shown = this.keeps.places.some((each) => each.context === source.context);
        const title = name(this.profile.title(source.context));
        return shown ? h('a', { href: state.link('keeps', { at: this.profile.column('id')![source.context]! }) }, title) : h('span', null, title);
    }

    /* Upwards: who keeps the place, what points to it, a shortest way. */
    private details(place: Place): HTMLElement {
        const shares = (rows: { share: string; what: (HTMLElement | string | null)[] }[], more: string) => h('ul', { class: 'plain shares' },
            rows.map(({ share, what }) => h('li', null, h('span', { class: 'share' }, share), what)), more ? h('li', { class: 'faint' }, more) : null);
        const kept = place.kept.slice(0, 6);
        const keptRest = place.bytes - kept.reduce((sum, each) => sum + each.bytes, 0);
        const sourceRest = place.sourceCount - place.sources.length;
        const steps = place.way.map((each) => this.link(each));
        const way = steps.flatMap((step, index) => [step, index === 0 && place.wayLeftOut ? ` → (${format.count(place.wayLeftOut)} more) → ` : ' → ']);
        return h('div', { class: 'detail keeps-detail' },
            h('div', null,
                h('p', { class: 'caption' }, 'Kept by'),
                shares(kept.map((each) => ({ share: format.percent(each.bytes, place.bytes) || '0 %', what: [this.keeperLink(each.keeper, '')] })), kept.length && keptRest > 0 ? `${format.percent(keptRest, place.bytes)} by others` : ''),
                place.retainedBytes > place.bytes ? h('p', null, `Without these blocks at least ${format.bytes(place.retainedBytes)} in ${format.plural(place.retainedBlocks, 'block')} could not be reached.`) : null),
            h('div', null,
                h('p', { class: 'caption' }, `Pointed to by (${format.plural(place.pointers, 'pointer')})`),
                shares(place.sources.map((each) => ({ share: format.percent(each.pointers, place.pointers) || '0 %', what: [this.link(each), this.caller(each, place.sources), each.offset ? `, at +${each.offset}` : null, each.momentary ? ' (for a moment)' : null] })), sourceRest > 0 ? `${format.count(sourceRest)} more` : '')),
            h('div', { class: 'way' }, h('p', { class: 'caption' }, 'Shortest way'),
                steps.length ? h('p', null, way, name(this.profile.title(place.context))) : h('p', null, 'No pointer to these blocks was recorded.'),
                h('p', null, h('a', { href: state.link('contexts', { by: 'stack', at: this.idOf(place) }) }, 'Call stack of the place'))));
    }
}

export const keeps: View = {
    key: 'keeps',
    title: 'Keeps',
    missing: (page: Page) => (page.profile.table('keeps.info') ? null : 'Who keeps the memory alive was not recorded: heapwise record --keeps brings it.'),
    show: (page: Page, root: HTMLElement) => {
        const view = new KeepsView(page.profile, root);
        return () => view.end();
    },
};
