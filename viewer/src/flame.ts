/* flame.ts - calls as a flame graph, an icicle, or from the leaf on; widths are any value, also a change of one. */
import { add, fitCanvas, h, name, replace, save, searching, select, svg, themed } from './dom';
import { prepareTable } from './contexts';
import { copy } from './detail';
import { changeColor, heatColor, kinds, layout, moduleColor, nameColor, type Box } from './flame_layout';
import * as format from './format';
import { framesBy } from './functions';
import { measure as measureOf, told, toldNumbers, usual, type Measure } from './measures';
import { isDark, onTheme, say, tell } from './shell';
import * as state from './state';
import { foldedOf, foldedWithWrappers, namesWith, stacksOf, within, withWrappers, wraps, type Stacks } from './stacks';
import { CallTree, type Sums } from './tree';
import { baseName, type Profile } from './model';
import type { Page, View } from './view';

const rowHeight = 19;
const minimum = 0.7; // CSS pixels of a box that is drawn

/* What widths and colours mean. */
interface Values {
    measure: Measure;
    width: Sums;
    old: Sums | null; // of the baseline
    swapped: boolean; // `width` is that of the baseline, `old` that of this profile
    ratio: { of: Sums; over: Sums; least: number; most: number } | null;
    byContext: Float64Array; // what widths are made of
}

/* Call stacks of what is shown: with recursion folded unless the address says otherwise. With a baseline they are as
 * heapwise diff matches them, which folds recursion, too. */
function pageStacks(page: Page, folded: boolean, wrappers: boolean): Stacks {
    return page.comparison?.stacks ?? (wrappers ? (folded ? foldedWithWrappers : withWrappers) : folded ? foldedOf : stacksOf)(page.profile);
}

const trees = new WeakMap<Stacks, Map<boolean, CallTree>>();

function treeOf(page: Page, folded: boolean, wrappers: boolean, inverted: boolean): CallTree {
    const stacks = pageStacks(page, folded, wrappers);
    const known = trees.get(stacks) ?? new Map<boolean, CallTree>();
    trees.set(stacks, known);
    let tree = known.get(inverted);
    if (!tree) {
        tree = new CallTree(stacks, inverted);
        known.set(inverted, tree);
    }
    return tree;
}

/* Makes what a first look takes longest for while nobody waits. */
export function prepare(page: Page): void {
    const { profile } = page;
    const idle = window.requestIdleCallback ?? ((action: () => void) => setTimeout(action, 300));
    /* One at a time, so that a click waits for one of them at most. */
    const steps = [
        () => stacksOf(profile), () => foldedOf(profile), () => treeOf(page, true, false, false), () => told(profile), () => toldNumbers(profile), () => prepareTable(profile, 'place'),
        () => framesBy(profile, 'function'), () => prepareTable(profile, 'function'), () => framesBy(profile, 'module'), () => prepareTable(profile, 'module'),
        () => treeOf(page, true, false, true).children(0), () => framesBy(profile, 'file'), () => prepareTable(profile, 'file'),
    ];
    const next = () => {
        steps.shift()?.();
        if (steps.length)
            idle(next);
    };
    idle(next);
}

/* What boxes are drawn with. */
interface Style {
    dark: boolean;
    ink: string;
    faint: string;
    found: string;
    focus: string;
    letter: number;
    width: number;
    active: boolean;
    depth: number; // of the box that is zoomed to
}

/* Paths in the address: functions, one after the other. */
const joinPath = (path: string[]) => path.map(encodeURIComponent).join('/');
const splitPath = (text: string) => {
    try {
        return text ? text.split('/').map(decodeURIComponent) : [];
    } catch {
        return [];
    }
};

/* As much of TEXT as has ROOM, in letters. Of code without a name the end is kept, too: it distinguishes it. */
function cut(text: string, room: number): string {
    if (text.length <= room)
        return text;
    const offset = /\+0x[0-9a-f]+$/.exec(text)?.[0] ?? '';
    const end = room > offset.length + 5 ? offset : '';
    return `${text.slice(0, Math.max(1, room - 1 - end.length))}…${end}`;
}

class FlameGraph {
    private tree!: CallTree;
    private values!: Values;
    private boxes: Box[] = [];
    private rows: Box[][] = [];
    private zoom = 0;
    private selected = 0;
    private found: Uint8Array | null = null; // by name
    private colors: string[] = []; // by name
    private colorsDark = false;
    private printed = false; // all of it is drawn, for paper
    private pending = 0; // a frame in which to draw
    private placed = ''; // the size for which boxes were laid out
    private ranks: Map<number, number> | null = null; // of modules, for colours
    private counts: { blocks: Sums; places: Sums } | null = null; // for the words about a box
    private readonly canvas = h('canvas', { tabindex: 0, role: 'application', 'aria-roledescription': 'flame graph', 'aria-describedby': 'flame-said' });
    private readonly spacer = h('div', { class: 'flame-spacer' }, this.canvas);
    private readonly scroller = h('div', { class: 'flame-scroller' }, this.spacer);
    private readonly said = h('div', { class: 'flame-said', id: 'flame-said', role: 'status' });
    private readonly tip = h('div', { class: 'tip', 'aria-hidden': 'true' });
    private readonly crumbs = h('div', { class: 'crumbs' });
    private readonly tools = h('div', { class: 'tools' });
    private readonly search: HTMLInputElement;
    private readonly matched = h('span', { class: 'matched', role: 'status' });
    private readonly undo: (() => void)[] = [];

    constructor(
        private readonly page: Page,
        root: HTMLElement,
    ) {
        this.search = h('input', {
            type: 'search', id: 'search', value: state.get('q'), placeholder: 'Search functions', 'aria-label': 'Search functions', spellcheck: 'false', autocomplete: 'off',
            ...searching(() => { state.note({ q: this.search.value }); this.find(); this.draw(); }),
        });
        add(root, this.tools, this.crumbs, this.scroller, this.said, this.tip);
        this.listen();
        this.load();
        this.tellUnknown();
        const size = new ResizeObserver(() => {
            if (this.placed !== this.size())
                this.place();
        });
        size.observe(this.scroller);
        for (const [event, printed] of [['beforeprint', true], ['afterprint', false]] as const) {
            const paint = () => { this.printed = printed; this.paint(); };
            addEventListener(event, paint);
            this.undo.push(() => removeEventListener(event, paint));
        }
        this.undo.push(() => size.disconnect(), onTheme(() => { this.fillTools(); this.paint(); }));
    }

    end(): void {
        cancelAnimationFrame(this.pending);
        this.undo.forEach((each) => each());
    }

    /* ---- what is shown ---- */

    private get kind(): string {
        return state.get('shape', 'icicle');
    }

    private get measure(): Measure {
        const wanted = measureOf(state.get('value'));
        return wanted?.values(this.page.profile) ? wanted : usual(this.page.profile);
    }

    private get folded(): boolean {
        return state.get('recursion', 'folded') !== 'all';
    }

    /* The stacks as they are: what recursion hides when it is folded was called all the same. */
    private get written(): Stacks {
        return pageStacks(this.page, false, state.get('wrappers') === 'shown');
    }

    private get byModule(): boolean {
        return state.get('colors') === 'module' && this.tree.stacks.module !== null;
    }

    /* What of the address is not there. */
    private tellUnknown(): void {
        const zoom = splitPath(state.get('zoom'));
        const found = this.tree.depth[this.zoom]!;
        if (found < zoom.length)
            tell(`The call path of this link is not in this profile${found ? `: it ends at ${this.nameOf(this.zoom)}` : ''}.`);
        const focus = state.get('focus');
        if (focus && !this.tree.names.includes(focus))
            tell(`This profile has no function “${focus}”.`);
        const value = state.get('value');
        if (value && !measureOf(value)?.values(this.page.profile))
            tell(`This profile has no value “${value}”: ${this.measure.title.toLowerCase()} is shown.`);
    }

    /* Everything anew: another shape, value or focus. */
    private load(): void {
        this.tree = treeOf(this.page, this.folded, state.get('wrappers') === 'shown', this.kind === 'inverted');
        this.colors = [];
        this.counts = null;
        this.ranks = null;
        const focus = state.get('focus');
        const through = focus ? within(this.written, Uint8Array.from(this.tree.names, (text) => (text === focus ? 1 : 0))) : null;
        const { profile, baseline } = this.page;
        const { measure } = this;
        const swapped = Boolean(baseline) && state.get('widths', 'new') === 'old';
        const width = measure.additive ? measure.values : measureOf('bytes')!.values;
        const now = this.byContext(profile, 0, width, through);
        const before = baseline && this.byContext(baseline, 1, width, through);
        const sums = [this.tree.sums(0, now), before ? this.tree.sums(1, before) : null] as const;
        this.values = {
            measure,
            width: swapped && sums[1] ? sums[1] : sums[0],
            old: swapped && sums[1] ? sums[0] : sums[1],
            swapped: swapped && Boolean(sums[1]),
            ratio: measure.parts ? this.ratio(measure.parts, through) : null,
            byContext: swapped && before ? before : now,
        };
        this.zoom = this.tree.find(splitPath(state.get('zoom')));
        this.selected = this.zoom;
        this.find();
        this.place();
        this.fillTools();
    }

    /* A value by context, without pools, which are parts of other blocks, and what is not THROUGH a function. */
    private byContext(profile: Profile, number: number, of: Measure['values'], through: Uint8Array | null): Float64Array {
        const values = of(profile);
        const pool = profile.column('pool');
        const leaf = this.written.leaf[number]!;
        const found = new Float64Array(profile.count);
        for (let i = 0; values && i < found.length; i++)
            if (!pool?.[i] && (!through || through[leaf[i]!]))
                found[i] = values[i]!;
        return found;
    }

    private ratio(parts: NonNullable<Measure['parts']>, through: Uint8Array | null): Values['ratio'] {
        if (parts.some((part) => !part(this.page.profile)))
            return null;
        const [of, over] = parts.map((part) => this.byContext(this.page.profile, 0, part, through)) as [Float64Array, Float64Array];
        let least = Infinity;
        let most = 0;
        for (let i = 0; i < of.length; i++) // sums lie between the least and the greatest of their parts
            if (of[i]! > 0 && over[i]! > 0) {
                least = Math.min(least, of[i]! / over[i]!);
                most = Math.max(most, of[i]! / over[i]!);
            }
        return { of: this.tree.sums(0, of), over: this.tree.sums(0, over), least: Math.max(most ? least : 0, most / 1e6), most };
    }

    private fillTools(): void {
        const { profile } = this.page;
        const shapes = [['icicle', 'Icicle'], ['flame', 'Flame'], ['inverted', 'Inverted (by callee)']] as const;
        const values = told(profile).filter((each) => each.additive || each.key === 'accesses-per-byte' || each.key === 'lifetime-or-age');
        const change = (key: string) => (value: string) => { state.note({ [key]: value, ...(key === 'shape' ? { zoom: '' } : {}) }); this.load(); };
        replace(
            this.tools,
            this.search, this.matched, h('span', { class: 'space' }),
            this.page.baseline ? select('Widths', [['new', 'this profile'], ['old', 'the baseline']], state.get('widths', 'new'), change('widths')) : null,
            select('Value', values.map((each) => [each.key, each.title] as const), this.measure.key, change('value')),
            select('Shape', shapes, this.kind, change('shape')),
            this.page.comparison ? null : select('Recursion', [['folded', 'folded'], ['all', 'every call']], this.folded ? 'folded' : 'all', (value) => { state.note({ recursion: value === 'folded' ? '' : value, zoom: '' }); this.load(); }),
            !this.page.comparison && wraps(profile) ? select('Wrappers', [['folded', 'folded'], ['shown', 'shown']], state.get('wrappers', 'folded'), (value) => { state.note({ wrappers: value === 'folded' ? '' : value, zoom: '' }); this.load(); }) : null,
            this.tree.stacks.module && !this.values.ratio && !this.values.old ? select('Colours', [['kind', 'by kind'], ['module', 'by module']], this.byModule ? 'module' : 'kind', (value) => { state.note({ colors: value === 'kind' ? '' : value }); this.colors = []; this.fillTools(); this.draw(); }) : null,
            h('button', { type: 'button', onclick: () => this.saveSvg(), title: 'what is shown, as a drawing' }, 'SVG'),
            h('button', { type: 'button', onclick: () => this.savePng(), title: 'what is shown, as a picture' }, 'PNG'),
            this.legend(),
        );
    }

    private legend(): HTMLElement {
        const { ratio, old } = this.values;
        const dark = isDark();
        const swatch = (color: string) => { const box = h('i'); box.style.background = color; return box; };
        if (old)
            return h('span', { class: 'scale', title: 'the change, divided by the greater of the two values' }, 'gone, less ', [-1, -0.4, -0.1, 0, 0.1, 0.4, 1].map((at) => swatch(changeColor(at, dark))), ' more, new');
        if (ratio)
            return h('span', { class: 'scale' }, `${this.values.measure.format(ratio.least)} `, [0, 0.2, 0.4, 0.6, 0.8, 1].map((at) => swatch(heatColor(at, dark))), ` ${this.values.measure.format(ratio.most)}; widths are bytes`);
        if (this.byModule)
            return h('span', { class: 'scale modules' }, this.modulesShown().map((module) => h('span', { class: 'meaning' }, swatch(moduleColor(this.rankOf(module), dark)), baseName(this.page.profile.modulePath(module)) || 'not known')));
        return h('span', { class: 'scale', title: 'shades distinguish functions' }, kinds.map(({ system, text }) => h('span', { class: 'meaning' }, [0, 0.5, 1].map((shade) => swatch(nameColor(shade, system, dark))), text)));
    }

    /* Modules of BOXES, those with most room first. */
    private modulesOf(boxes: Box[]): number[] {
        const room = new Map<number, number>();
        for (const box of boxes)
            if (!box.hidden && this.tree.name[box.node]! >= 0) {
                const module = this.tree.stacks.module![this.tree.name[box.node]!]!;
                room.set(module, (room.get(module) ?? 0) + box.width);
            }
        return [...room].sort((a, b) => b[1] - a[1]).map(([module]) => module);
    }

    private modulesShown(): number[] {
        return this.modulesOf(this.boxes).slice(0, 8);
    }

    /* The number that a module's colour is made of: those with most room differ most. It stays when the zoom changes. */
    private rankOf(module: number): number {
        this.ranks ??= new Map(this.modulesOf(layout(this.tree, this.values.width, 0, minimum / this.width)).filter((each) => each >= 0).map((each, rank) => [each, rank]));
        return module < 0 ? -1 : this.ranks.get(module) ?? this.ranks.size + module;
    }

    /* ---- boxes ---- */

    private get width(): number {
        return Math.max(200, this.scroller.clientWidth);
    }

    private size(): string {
        return `${this.scroller.clientWidth} ${this.scroller.clientHeight}`;
    }

    private place(): void {
        this.placed = this.size();
        this.boxes = layout(this.tree, this.values.width, this.zoom, minimum / this.width);
        this.rows = [];
        for (const box of this.boxes)
            (this.rows[box.row] ??= []).push(box);
        const height = this.rows.length * rowHeight;
        this.spacer.style.height = `${height}px`;
        if (this.kind === 'flame')
            this.scroller.scrollTop = height;
        this.showCrumbs();
        this.draw();
        this.tell(this.selected);
    }

    /* The top of a row in the whole picture. */
    private rowTop(row: number): number {
        return (this.kind === 'flame' ? Math.max(this.rows.length * rowHeight, this.scroller.clientHeight) / rowHeight - 1 - row : row) * rowHeight;
    }

    /* Draws before the next frame, however often it is asked for. */
    private draw(): void {
        if (!this.pending)
            this.pending = requestAnimationFrame(() => {
                this.pending = 0;
                this.paint();
            });
    }

    private paint(): void {
        const { width } = this;
        const height = Math.max(rowHeight, this.printed ? this.whole.height : this.scroller.clientHeight);
        const top = this.printed ? this.whole.top : this.scroller.scrollTop;
        const context = fitCanvas(this.canvas, width, height);
        this.canvas.style.transform = this.printed ? '' : `translateY(${top}px)`;
        const style = this.style(context);
        if (style.dark !== this.colorsDark) {
            this.colors = [];
            this.colorsDark = style.dark;
        }
        this.drawRows(context, top, height, style);
    }

    private drawRows(context: CanvasRenderingContext2D, top: number, height: number, style: Style): void {
        for (const [row, boxes] of this.rows.entries()) {
            const y = this.rowTop(row) - top;
            if (y < -rowHeight || y > height)
                continue;
            for (const box of boxes)
                this.drawBox(context, box, y, style);
        }
    }

    /* ---- pictures ---- */

    private get whole(): { top: number; height: number } {
        const height = this.rows.length * rowHeight;
        return { top: this.kind === 'flame' ? this.rowTop(this.rows.length - 1) : 0, height };
    }

    private fileName(kind: string): string {
        return `${document.title.replace(/ – Heapwise$/, '').replace(/[^\w.-]+/g, '_') || 'profile'}.flame.${kind}`;
    }

    private savePng(): void {
        const { top, height } = this.whole;
        const scale = Math.min(2, 16000 / height, 16000 / this.width);
        const picture = document.createElement('canvas');
        picture.width = Math.round(this.width * scale);
        picture.height = Math.round(height * scale);
        const context = picture.getContext('2d')!;
        context.scale(scale, scale);
        const style = this.style(context);
        context.fillStyle = themed('--paper');
        context.fillRect(0, 0, this.width, height);
        this.drawRows(context, top, height, { ...style, active: false });
        picture.toBlob((blob) => (blob ? save(blob, this.fileName('png')) : say('The browser cannot make a picture of this size')), 'image/png');
    }

    private saveSvg(): void {
        const { top, height } = this.whole;
        const style = this.style(this.canvas.getContext('2d')!);
        const boxes = this.rows.flatMap((row, index) => row.map((box) => {
            const wide = Math.max(0.5, box.width * this.width - 0.7);
            const x = box.x * this.width;
            const y = this.rowTop(index) - top;
            const text = box.hidden ? `${format.count(box.hidden)} narrower` : this.nameOf(box.node);
            const number = this.tree.name[box.node]!;
            const faint = this.found && !box.hidden && number >= 0 && !this.found[number];
            const room = Math.floor((wide - 6) / style.letter);
            return svg('g', faint ? { opacity: 0.28 } : {},
                svg('title', {}, box.hidden ? text : `${text}: ${this.facts(box.node)}`),
                svg('rect', { x: x.toFixed(2), y, width: wide.toFixed(2), height: rowHeight - 1, fill: box.hidden ? style.faint : this.color(box.node, style.dark), ...(box.hidden ? { 'fill-opacity': 0.22 } : {}) }),
                wide > 28 ? svg('text', { x: (x + 4).toFixed(2), y: y + rowHeight / 2 + 4, fill: style.ink }, cut(text, room)) : null);
        }));
        const drawing = svg('svg', { width: this.width, height, viewBox: `0 0 ${this.width} ${height}`, 'font-family': 'system-ui, sans-serif', 'font-size': 12 },
            svg('rect', { width: this.width, height, fill: themed('--paper') }), boxes);
        save(new Blob([new XMLSerializer().serializeToString(drawing)], { type: 'image/svg+xml' }), this.fileName('svg'));
    }

    private style(context: CanvasRenderingContext2D): Style {
        context.font = '12px system-ui, -apple-system, "Segoe UI", sans-serif';
        context.textBaseline = 'middle';
        return {
            dark: isDark(), ink: themed('--ink'), faint: themed('--faint'), found: themed('--found'), focus: themed('--focus'), letter: context.measureText('n').width,
            width: this.width, active: document.activeElement === this.canvas, depth: this.tree.depth[this.zoom]!,
        };
    }

    private drawBox(context: CanvasRenderingContext2D, box: Box, y: number, style: Style): void {
        const x = box.x * style.width;
        const wide = box.width * style.width;
        if (box.hidden) {
            this.drawHidden(context, box, x, y, style);
            return;
        }
        const number = this.tree.name[box.node]!;
        const hit = this.found && number >= 0 && this.found[number];
        context.globalAlpha = this.found && number >= 0 && !hit ? 0.28 : box.row < style.depth ? 0.6 : 1;
        context.fillStyle = this.color(box.node, style.dark);
        context.fillRect(x, y, Math.max(0.5, wide - (wide > 2 ? 0.7 : 0)), rowHeight - 1);
        if (hit) {
            context.fillStyle = style.found;
            context.fillRect(x, y + rowHeight - 4, Math.max(1, wide - 0.7), 3);
        }
        if (wide > 28) {
            const text = this.nameOf(box.node);
            const room = Math.floor((wide - 6) / style.letter);
            context.fillStyle = style.ink;
            context.fillText(cut(text, room), x + 4, y + rowHeight / 2, wide - 6);
        }
        context.globalAlpha = 1;
        if (style.active && box.node === this.selected) {
            context.strokeStyle = style.focus;
            context.lineWidth = 2;
            context.strokeRect(x + 1, y + 1, Math.max(2, wide - 2.7), rowHeight - 3);
        }
    }

    /* What is too narrow for boxes of its own. */
    private drawHidden(context: CanvasRenderingContext2D, box: Box, x: number, y: number, style: Style): void {
        const wide = box.width * style.width;
        context.fillStyle = style.faint;
        context.globalAlpha = 0.22;
        context.fillRect(x, y, Math.max(0.5, wide - 0.7), rowHeight - 1);
        context.globalAlpha = 1;
        const text = `${format.count(box.hidden)} narrower`;
        if (wide > context.measureText(text).width + 8) {
            context.fillStyle = style.faint;
            context.fillText(text, x + 4, y + rowHeight / 2);
        }
    }

    private color(node: number, dark: boolean): string {
        const { ratio, old, width, swapped } = this.values;
        if (old) {
            const [before, after] = swapped ? [width.of(node), old.of(node)] : [old.of(node), width.of(node)];
            return changeColor(before + after ? (after - before) / Math.max(before, after) : 0, dark);
        }
        if (ratio) {
            const value = ratio.over.of(node) ? ratio.of.of(node) / ratio.over.of(node) : 0;
            const span = Math.log(ratio.most / ratio.least) || 1;
            return heatColor(value > 0 ? Math.log(value / ratio.least) / span : 0, dark);
        }
        const number = this.tree.name[node]!;
        return number < 0 ? (dark ? '#33373d' : '#e4e6ea') : (this.colors[number] ??= this.byModule ? moduleColor(this.rankOf(this.tree.stacks.module![number]!), dark) : nameColor(this.tree.names[number]!, Boolean(this.tree.stacks.system[number]), dark));
    }

    private nameOf(node: number): string {
        const number = this.tree.name[node]!;
        return number < 0 ? 'all' : this.tree.names[number]!;
    }

    /* ---- search ---- */

    private find(): void {
        const word = this.search.value.trim().toLowerCase();
        this.found = word ? namesWith(this.tree.names, word) : null;
        this.matched.textContent = '';
        if (!this.found)
            return;
        const hit = within(this.written, this.found);
        const leaf = this.written.leaf[this.values.swapped ? 1 : 0]!;
        const sum = this.values.byContext.reduce((all, value, context) => (hit[leaf[context]!] ? all + value : all), 0);
        const names = this.found.reduce((all, each) => all + each, 0);
        this.matched.textContent = names ? `${format.plural(names, 'function')}: ${this.unit(sum)}, ${format.percent(sum, this.values.width.of(0)) || '0 %'}` : 'no function';
    }

    /* ---- words ---- */

    private unit(value: number): string {
        return (this.values.measure.additive ? this.values.measure.format : format.bytes)(value);
    }

    /* Where a box is in the source, and how many blocks and call stacks are in it. */
    private source(node: number): string {
        const { profile } = this.page;
        const { stacks } = this.tree;
        this.counts ??= {
            blocks: this.tree.sums(0, this.byContext(profile, 0, measureOf('count')!.values, null)),
            places: this.tree.sums(0, profile.unknown ? Float64Array.from(this.values.byContext, (value) => (value ? 1 : 0)) : new Float64Array(profile.count).fill(1)),
        };
        const lines = new Map<string, number>();
        let module = '';
        for (const item of stacks.frame && node ? this.tree.nodesOf(node, 2000) : []) {
            const frame = stacks.frame![item]!;
            const file = profile.fileName(profile.fileNumber(frame));
            module ||= stacks.module ? baseName(profile.modulePath(stacks.module[stacks.name[item]!]!)) : '';
            if (file)
                lines.set(`${baseName(file)}:${profile.lineOf(frame)}`, (lines.get(`${baseName(file)}:${profile.lineOf(frame)}`) ?? 0) + 1);
        }
        if (!stacks.frame && node) { // of a comparison: where the function is in this profile
            const shown = profile.names.indexOf(this.nameOf(node));
            module = shown < 0 ? '' : framesBy(profile, 'function').where(shown);
        }
        const [first, ...rest] = [...lines].sort((a, b) => b[1] - a[1]);
        const place = first ? `${first[0]}${rest.length ? ` and ${format.plural(rest.length, 'other line')}` : ''}` : '';
        const stacksOfIt = format.plural(this.counts.places.of(node), 'call stack');
        return [place, module, measureOf('count')!.values(profile) ? `${format.plural(this.counts.blocks.of(node), 'allocation')} on ${stacksOfIt}` : stacksOfIt].filter(Boolean).join(' · ');
    }

    private facts(node: number): string {
        const { measure, width, old, swapped, ratio } = this.values;
        const unit = (value: number) => this.unit(value);
        const parts = [`${unit(width.of(node))} (${format.percent(width.of(node), width.of(0)) || '0 %'})`];
        const own = width.own(node);
        if (own && node)
            parts.push(`itself ${unit(own)}`);
        if (old) {
            const [before, now] = swapped ? [width.of(node), old.of(node)] : [old.of(node), width.of(node)];
            parts.push(`${swapped ? `in the baseline; now ${unit(now)}` : `in the baseline ${unit(before)}`}: ${format.change(now - before, unit)} since the baseline`);
        }
        if (ratio)
            parts.push(`${measure.title.toLowerCase()} ${ratio.over.of(node) ? measure.format(ratio.of.of(node) / ratio.over.of(node)) : 'not known'}`);
        return parts.join(', ');
    }

    private tell(node: number): void {
        const text = this.nameOf(node);
        const isFunction = this.tree.name[node]! >= 0;
        const focus = () => { state.note({ focus: text, zoom: '' }); this.load(); };
        replace(
            this.said,
            h('p', null, name(text), ` ${this.facts(node)}`),
            h('p', { class: 'source' }, node ? this.source(node) : ''),
            h('p', { class: 'links' },
                node !== this.zoom ? h('button', { type: 'button', onclick: () => this.zoomTo(node) }, 'Zoom') : null,
                isFunction ? h('button', { type: 'button', onclick: focus, title: 'only stacks through this function (f)' }, 'Focus') : null,
                isFunction ? h('a', { href: state.link('sandwich', { f: text, value: this.values.measure.additive ? state.get('value') : '' }), title: 'this function, what calls it and what it calls (s)' }, 'Callers and callees') : null,
                isFunction ? h('a', { href: state.link('contexts', { q: `"${text.replaceAll('"', '')}"` }) }, 'Its places') : null,
                h('button', { type: 'button', onclick: () => void copy(this.tree.path(node).join(';') + '\n').then((done) => say(done ? 'Copied the stack' : 'The browser does not let this page copy')) }, 'Copy stack')),
        );
        this.canvas.setAttribute('aria-label', `${text}: ${this.facts(node)}`);
    }

    private showCrumbs(): void {
        const focus = state.get('focus');
        const path = this.tree.path(this.zoom);
        const steps = path.slice(-6).map((text, index, shown) => {
            let node = this.zoom;
            for (let up = shown.length - 1; up > index; up--)
                node = this.tree.parent[node]!;
            return [' › ', h('button', { type: 'button', onclick: () => this.zoomTo(node) }, name(text))];
        });
        replace(
            this.crumbs,
            h('button', { type: 'button', onclick: () => this.zoomTo(0), disabled: !this.zoom }, 'All'),
            path.length > 6 ? ' › …' : null,
            steps.flat(),
            focus ? h('span', { class: 'chip' }, 'only stacks through ', name(focus), h('button', { type: 'button', 'aria-label': 'All stacks again', onclick: () => { state.note({ focus: '' }); this.load(); } }, '×')) : null,
        );
    }

    /* ---- moving ---- */

    private zoomTo(node: number): void {
        if (node !== this.zoom)
            state.step({ zoom: joinPath(this.tree.path(node)) });
        this.zoom = node;
        this.selected = node;
        this.place();
    }

    private at(event: MouseEvent): Box | undefined {
        const box = this.canvas.getBoundingClientRect();
        const y = event.clientY - box.top + this.scroller.scrollTop;
        const x = (event.clientX - box.left) / box.width;
        const row = this.rows.findIndex((_, index) => y >= this.rowTop(index) && y < this.rowTop(index) + rowHeight);
        return this.rows[row]?.find((each) => x >= each.x && x < each.x + each.width);
    }

    private hover(event: MouseEvent): void {
        const box = this.at(event);
        this.tip.classList.toggle('shown', Boolean(box));
        this.canvas.style.cursor = box ? 'pointer' : '';
        if (!box)
            return;
        if (box.hidden)
            replace(this.tip, `${format.plural(box.hidden, 'function')} too narrow to be drawn: ${format.percent(box.width * this.values.width.of(this.zoom), this.values.width.of(0))} below `, name(this.nameOf(box.node), 'name whole'), box.node === this.zoom ? '. The search finds them.' : '. A click zooms there.');
        else
            replace(this.tip, name(this.nameOf(box.node), 'name whole'), h('br'), this.facts(box.node), h('br'), this.source(box.node));
        const left = Math.min(event.clientX + 14, innerWidth - this.tip.offsetWidth - 8);
        const below = event.clientY + 18 + this.tip.offsetHeight < innerHeight;
        this.tip.style.transform = `translate(${Math.max(4, left)}px, ${below ? event.clientY + 18 : event.clientY - this.tip.offsetHeight - 8}px)`;
    }

    private choose(box: Box | undefined): void {
        if (!box)
            return;
        this.selected = box.node;
        const top = this.rowTop(box.row);
        if (top < this.scroller.scrollTop || top + rowHeight > this.scroller.scrollTop + this.scroller.clientHeight)
            this.scroller.scrollTop = top - this.scroller.clientHeight / 2;
        this.draw();
        this.tell(box.node);
    }

    private keyDown(event: KeyboardEvent): void {
        if (event.ctrlKey || event.metaKey || event.altKey)
            return;
        const row = this.rows.findIndex((boxes) => boxes.some((box) => box.node === this.selected && !box.hidden));
        const boxes = (this.rows[row] ?? []).filter((box) => !box.hidden);
        const index = boxes.findIndex((box) => box.node === this.selected);
        const inward = this.kind === 'flame' ? 'ArrowUp' : 'ArrowDown';
        const child = () => this.rows[row + 1]?.find((box) => !box.hidden && this.tree.parent[box.node] === this.selected);
        const parent = () => this.rows[row - 1]?.find((box) => !box.hidden && box.node === this.tree.parent[this.selected]);
        if (event.key === 'ArrowLeft' || event.key === 'ArrowRight')
            this.choose(boxes[index + (event.key === 'ArrowLeft' ? -1 : 1)]);
        else if (event.key === 'ArrowUp' || event.key === 'ArrowDown')
            this.choose(event.key === inward ? child() : parent());
        else if (event.key === 'Enter')
            this.zoomTo(this.selected);
        else if (event.key === 'Backspace')
            this.zoomTo(Math.max(0, this.tree.parent[this.zoom]!));
        else if (event.key === '0' || (event.key === 'Escape' && this.zoom))
            this.zoomTo(0);
        else if (event.key === 'f' && this.tree.name[this.selected]! >= 0) {
            state.note({ focus: this.nameOf(this.selected), zoom: '' });
            this.load();
        } else if (event.key === 's' && this.tree.name[this.selected]! >= 0)
            state.go('sandwich', { f: this.nameOf(this.selected), value: this.values.measure.additive ? state.get('value') : '' });
        else
            return;
        event.preventDefault();
    }

    private listen(): void {
        this.scroller.addEventListener('scroll', () => this.draw());
        this.canvas.addEventListener('mousemove', (event) => this.hover(event));
        this.canvas.addEventListener('mouseleave', () => this.tip.classList.remove('shown'));
        this.canvas.addEventListener('click', (event) => {
            const box = this.at(event);
            if (box)
                this.zoomTo(box.node);
        });
        this.canvas.addEventListener('keydown', (event) => this.keyDown(event));
        this.canvas.addEventListener('focus', () => this.draw());
        this.canvas.addEventListener('blur', () => this.draw());
    }
}

export const flame: View = {
    key: 'flame',
    title: 'Flame graph',
    timed: true,
    missing: (page: Page) => (page.profile.count ? null : 'This profile has no call stacks: nothing was allocated, or the allocations were lost.'),
    show: (page: Page, root: HTMLElement) => {
        const graph = new FlameGraph(page, root);
        return () => graph.end();
    },
};
