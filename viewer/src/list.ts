/* list.ts - a list of any length of which only the visible rows exist. Rows have one height; a row that is open has a
 * part of its own height below it. The list keeps the keyboard: the active row moves, the focus stays. */
import { h } from './dom';
import * as format from './format';

export interface ListOptions {
    label: string;
    rowHeight: number;
    columns: number;
    /* Fills an empty row. */
    fill: (row: HTMLElement, index: number) => void;
    /* The part below an open row. */
    open?: (index: number) => HTMLElement;
    activated?: (index: number) => void;
    key?: (event: KeyboardEvent, index: number) => boolean;
    /* The head stays on top and scrolls sideways with the rows. */
    head?: HTMLElement;
}

const mostPrinted = 2000; // rows on paper
const mostOpen = 640; // pixels of the part below a row; what is longer scrolls in it

let lists = 0;

export class List {
    readonly element: HTMLElement;
    active = 0;
    private count = 0;
    private readonly id = `list${lists++}`;
    private readonly rows: HTMLElement;
    private opened: { index: number; height: number; element: HTMLElement }[] = []; // by index
    private shown = new Map<number, HTMLElement>();
    private printed = false;
    private readonly ended = new AbortController();
    private width = 0; // for which what is open was measured

    constructor(private readonly options: ListOptions) {
        this.rows = h('div', { class: 'list-rows', role: 'rowgroup' });
        this.element = h(
            'div',
            { class: 'list', role: options.open ? 'treegrid' : 'grid', tabindex: 0, 'aria-label': options.label, 'aria-colcount': options.columns, onscroll: () => this.draw() },
            options.head,
            this.rows,
        );
        this.element.addEventListener('keydown', (event) => this.keyDown(event));
        this.rows.addEventListener('click', (event) => this.click(event));
        new ResizeObserver(() => this.resized()).observe(this.element);
        for (const [event, whole] of [['beforeprint', true], ['afterprint', false]] as const)
            addEventListener(event, () => this.print(whole), { signal: this.ended.signal });
    }

    /* On paper every row is there, as far as anybody would read them. */
    private print(whole: boolean): void {
        if (!this.element.isConnected) {
            this.ended.abort();
            return;
        }
        this.printed = whole;
        this.element.classList.toggle('printed', whole);
        this.refresh();
        if (whole && this.count > mostPrinted)
            this.rows.append(h('div', { class: 'list-item rest' }, `… and ${format.count(this.count - mostPrinted)} more rows`));
        else
            this.rows.querySelector('.rest')?.remove();
    }

    /* Shows COUNT rows anew, closed. */
    reset(count: number): void {
        this.count = count;
        this.opened = [];
        this.active = Math.min(this.active, Math.max(0, count - 1));
        this.element.setAttribute('aria-rowcount', String(count + 1));
        this.refresh();
    }

    refresh(): void {
        this.shown.clear();
        this.rows.replaceChildren();
        this.draw();
    }

    isOpen(index: number): boolean {
        return this.opened.some((each) => each.index === index);
    }

    toggle(index: number, open = !this.isOpen(index)): void {
        if (!this.options.open || index >= this.count || open === this.isOpen(index))
            return;
        this.opened = this.opened.filter((each) => each.index !== index);
        if (open) {
            const element = this.options.open(index);
            this.opened.push({ index, element, height: this.measure(element) });
            this.opened.sort((a, b) => a.index - b.index);
        }
        this.refresh();
    }

    /* The height that ELEMENT takes at the width of the list. */
    private measure(element: HTMLElement): number {
        const holder = h('div', { class: 'list-item sizing' }, element);
        this.element.style.setProperty('--room', `${this.element.clientWidth}px`);
        element.style.height = '';
        this.rows.append(holder);
        const height = element.offsetHeight;
        holder.remove();
        if (height > mostOpen) {
            element.tabIndex = 0; // so that keys scroll it
            element.setAttribute('role', 'group');
            element.setAttribute('aria-label', 'Details');
        }
        return Math.min(mostOpen, height);
    }

    private resized(): void {
        if (this.width !== this.element.clientWidth) {
            this.width = this.element.clientWidth;
            for (const each of this.opened)
                each.height = this.measure(each.element);
            this.refresh();
        } else
            this.draw();
    }

    /* Where a row begins, in pixels. */
    private top(index: number): number {
        let top = index * this.options.rowHeight;
        for (const each of this.opened)
            top += each.index < index ? each.height : 0;
        return top;
    }

    private at(y: number): number {
        let low = 0;
        for (let high = this.count; low < high; ) {
            const middle = (low + high + 1) >> 1;
            if (middle < this.count && this.top(middle) <= y)
                low = middle;
            else
                high = middle - 1;
        }
        return low;
    }

    private draw(): void {
        const { rowHeight } = this.options;
        const height = this.top(this.count);
        this.rows.style.height = `${height}px`;
        const from = this.printed ? 0 : this.at(this.element.scrollTop - rowHeight);
        const last = this.printed ? Math.min(this.count, mostPrinted) - 1 : this.count ? this.at(this.element.scrollTop + this.element.clientHeight) : -1;
        for (const [index, row] of this.shown)
            if (index < from || index > last) {
                row.remove();
                this.shown.delete(index);
            }
        for (let index = from; index <= last && index < this.count; index++)
            if (!this.shown.has(index))
                this.shown.set(index, this.makeRow(index));
        this.mark();
    }

    private makeRow(index: number): HTMLElement {
        const line = h('div', { class: 'row', role: 'row', id: `${this.id}-${index}`, 'aria-rowindex': index + 2, 'data-index': index });
        line.style.height = `${this.options.rowHeight}px`;
        line.classList.toggle('odd', index % 2 === 1);
        if (this.options.open)
            line.setAttribute('aria-expanded', String(this.isOpen(index)));
        this.options.fill(line, index);
        const open = this.opened.find((each) => each.index === index);
        const holder = h('div', { class: 'list-item', role: 'presentation' }, line);
        if (open) {
            open.element.style.height = `${open.height}px`;
            holder.append(h('div', { role: 'row' }, h('div', { role: 'gridcell', 'aria-colspan': this.options.columns }, open.element)));
        }
        holder.style.transform = `translateY(${this.top(index)}px)`;
        const next = this.printed ? undefined : [...this.shown].filter(([other]) => other > index).sort((a, b) => a[0] - b[0])[0];
        this.rows.insertBefore(holder, next ? next[1] : null);
        return holder;
    }

    private mark(): void {
        for (const [index, row] of this.shown)
            row.firstElementChild!.classList.toggle('active', index === this.active);
        if (this.shown.has(this.active))
            this.element.setAttribute('aria-activedescendant', `${this.id}-${this.active}`);
        else
            this.element.removeAttribute('aria-activedescendant');
    }

    /* Makes a row the active one, and visible. */
    moveTo(index: number): void {
        this.active = Math.max(0, Math.min(this.count - 1, index));
        const head = this.options.head?.offsetHeight ?? 0;
        const top = this.top(this.active);
        const room = this.element.clientHeight - head - this.options.rowHeight;
        if (top < this.element.scrollTop)
            this.element.scrollTop = top;
        else if (top > this.element.scrollTop + room)
            this.element.scrollTop = top - room;
        this.draw();
    }

    private keyDown(event: KeyboardEvent): void {
        if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey)
            return;
        const page = Math.max(1, Math.floor(this.element.clientHeight / this.options.rowHeight) - 2);
        const moves: Record<string, number> = {
            ArrowDown: this.active + 1, ArrowUp: this.active - 1, j: this.active + 1, k: this.active - 1,
            PageDown: this.active + page, PageUp: this.active - page, Home: 0, End: this.count - 1,
        };
        if (event.key in moves)
            this.moveTo(moves[event.key]!);
        else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft')
            this.toggle(this.active, event.key === 'ArrowRight');
        else if (event.key === 'Enter' || event.key === ' ')
            this.activate(this.active);
        else if (!this.options.key?.(event, this.active))
            return;
        event.preventDefault();
    }

    private activate(index: number): void {
        this.options.activated?.(index);
        this.toggle(index);
    }

    private click(event: MouseEvent): void {
        const target = event.target as HTMLElement;
        const row = target.closest<HTMLElement>('.row');
        if (!row || target.closest('button, a') || getSelection()?.toString())
            return;
        this.active = Number(row.dataset.index);
        this.activate(this.active);
        this.mark();
    }
}
