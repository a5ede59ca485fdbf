/* hot.ts - every place as a point: how long its blocks live, how often each byte is accessed, how much memory it is.
 * What lies at the right below is memory that is kept and not used; what lies at the left above is used and soon gone. */
import { add, fitCanvas, h, name, replace, select, themed } from './dom';
import * as format from './format';
import { measure } from './measures';
import type { Profile } from './model';
import { onTheme } from './shell';
import * as state from './state';
import type { Page, View } from './view';
import type { Column } from './decode';

const margin = { left: 66, right: 34, top: 14, bottom: 44 };
const floor = 34; // pixels of the strip for what was never accessed

interface Heat {
    values: Column;
    title: string;
    sampled: boolean; // values are samples for each byte: only their proportions mean something
}

/* Accesses for each byte, counted or sampled. */
function density(profile: Profile): Heat | null {
    const counted = measure('accesses-per-byte')!.values(profile);
    if (counted)
        return { values: counted, title: 'accesses per byte', sampled: false };
    const samples = measure('sampled-accesses')!.values(profile);
    const bytes = profile.column('bytes');
    return samples && bytes ? { values: samples.map((value, i) => (bytes[i] ? value / bytes[i]! : 0)), title: 'sampled accesses per byte', sampled: true } : null;
}

interface Scale {
    least: number;
    most: number;
    at: (value: number) => number; // 0 to 1
}

function logScale(values: number[]): Scale {
    let least = Infinity;
    let most = 0;
    for (const value of values)
        if (value > 0) {
            least = Math.min(least, value);
            most = Math.max(most, value);
        }
    if (!(most > 0))
        [least, most] = [1, 10];
    least = 10 ** Math.floor(Math.log10(least));
    most = 10 ** Math.ceil(Math.log10(most * 1.0001));
    const span = Math.log(most / least);
    return { least, most, at: (value) => Math.log(Math.max(least, value) / least) / span };
}

class Scatter {
    private readonly canvas = h('canvas', { tabindex: 0, role: 'application', 'aria-roledescription': 'scatter plot', 'aria-describedby': 'hot-said' });
    private readonly holder = h('div', { class: 'scatter' }, this.canvas);
    private readonly said = h('div', { class: 'flame-said', id: 'hot-said', role: 'status' });
    private readonly tools = h('div', { class: 'tools' });
    private readonly order: Uint32Array; // greatest area first
    private readonly x: Scale;
    private readonly y: Scale;
    private selected = -1;
    private px = new Float32Array(0);
    private py = new Float32Array(0);
    private pr = new Float32Array(0);
    private readonly undo: (() => void)[] = [];

    constructor(
        private readonly profile: Profile,
        root: HTMLElement,
        private readonly lifetime: Column,
        private readonly heat: Heat,
    ) {
        const area = this.area();
        this.order = Uint32Array.from({ length: profile.count }, (_, i) => i).filter((i) => area[i]! > 0 && lifetime[i]! > 0);
        this.order.sort((a, b) => area[b]! - area[a]!);
        this.x = logScale(Array.from(this.order, (i) => lifetime[i]!));
        this.y = logScale(Array.from(this.order, (i) => heat.values[i]!));
        const options = ['bytes', 'peak', 'leaked'].map((key) => measure(key)!).filter((each) => each.values(profile));
        add(this.tools, this.legend(), h('span', { class: 'space' }), select('Area', options.map((each) => [each.key, each.title] as const), state.get('area', 'bytes'), (value) => {
            state.note({ area: value });
            this.reorder();
        }));
        add(root, this.tools, this.holder, this.said);
        const size = new ResizeObserver(() => this.place());
        size.observe(this.holder);
        this.undo.push(() => size.disconnect(), onTheme(() => this.draw()));
        this.listen();
        this.tell(profile.contextOf(state.getNumber('at', -1)));
    }

    end(): void {
        this.undo.forEach((each) => each());
    }

    private area(): Column {
        return measure(state.get('area', 'bytes'))?.values(this.profile) ?? this.profile.column('bytes')!;
    }

    private reorder(): void {
        const area = this.area();
        this.order.sort((a, b) => area[b]! - area[a]!);
        this.place();
    }

    /* What is kept and hardly used, as a sum. */
    private legend(): HTMLElement {
        const { profile } = this;
        const run = profile.report.process.duration_ns ?? 0;
        const peak = measure('peak')!.values(profile) ?? profile.column('bytes')!;
        let cold = 0;
        let all = 0;
        for (const i of this.order) {
            all += peak[i]!;
            if ((this.heat.sampled ? !this.heat.values[i] : this.heat.values[i]! < 1 / 8) && this.lifetime[i]! > run / 10)
                cold += peak[i]!;
        }
        return h('p', { class: 'summary' }, `Cold and long-lived (${this.heat.sampled ? 'no sample of an access' : 'less than one access per 8 bytes'}, more than a tenth of the run): ${format.bytes(cold)} at the peak, ${format.percent(cold, all) || '0 %'}.`);
    }

    private place(): void {
        const width = this.holder.clientWidth - margin.left - margin.right;
        const height = this.holder.clientHeight - margin.top - margin.bottom - floor;
        const area = this.area();
        let most = 1;
        for (const i of this.order)
            most = Math.max(most, area[i]!);
        const largest = Math.min(width, height) / 9;
        this.px = new Float32Array(this.profile.count);
        this.py = new Float32Array(this.profile.count);
        this.pr = new Float32Array(this.profile.count);
        for (const i of this.order) {
            const heat = this.heat.values[i]!;
            this.px[i] = margin.left + this.x.at(this.lifetime[i]!) * width;
            this.py[i] = heat > 0 ? margin.top + (1 - this.y.at(heat)) * height : margin.top + height + floor / 2 + 6;
            this.pr[i] = Math.max(1.5, largest * Math.sqrt(area[i]! / most));
        }
        this.draw();
    }

    private draw(): void {
        const width = this.holder.clientWidth;
        const height = this.holder.clientHeight;
        const context = fitCanvas(this.canvas, width, height);
        context.font = '12px system-ui, sans-serif';
        this.drawAxes(context, width, height);
        context.save();
        context.beginPath();
        context.rect(margin.left, 0, width - margin.left, height - margin.bottom + 4);
        context.clip();
        const fill = themed('--series1');
        context.lineWidth = 1;
        context.strokeStyle = themed('--paper');
        for (const i of this.order) {
            context.beginPath();
            context.arc(this.px[i]!, this.py[i]!, this.pr[i]!, 0, 2 * Math.PI);
            context.globalAlpha = 0.55;
            context.fillStyle = fill;
            context.fill();
            if (this.pr[i]! > 3) {
                context.globalAlpha = 0.9;
                context.stroke();
            }
        }
        context.globalAlpha = 1;
        if (this.selected >= 0) {
            context.strokeStyle = themed('--focus');
            context.lineWidth = 2.5;
            context.beginPath();
            context.arc(this.px[this.selected]!, this.py[this.selected]!, this.pr[this.selected]! + 3, 0, 2 * Math.PI);
            context.stroke();
        }
        context.restore();
    }

    private drawAxes(context: CanvasRenderingContext2D, width: number, height: number): void {
        const right = width - margin.right;
        const bottom = height - margin.bottom;
        const zero = bottom - floor;
        context.strokeStyle = themed('--line');
        context.fillStyle = themed('--faint');
        context.lineWidth = 1;
        const line = (x0: number, y0: number, x1: number, y1: number) => {
            context.beginPath();
            context.moveTo(x0, y0);
            context.lineTo(x1, y1);
            context.stroke();
        };
        context.textAlign = 'center';
        const decades = Math.max(1, Math.log10(this.x.most / this.x.least));
        const every = Math.max(1, Math.ceil((56 * decades) / (right - margin.left))); // as many as have room
        for (let value = this.x.least; value <= this.x.most * 1.001; value *= 10) {
            const x = margin.left + this.x.at(value) * (right - margin.left);
            line(x, margin.top, x, bottom);
            if (Math.round(Math.log10(value / this.x.least)) % every === 0)
                context.fillText(format.axis(format.duration(value)), x, bottom + 16);
        }
        context.fillText('mean lifetime of a block', (margin.left + right) / 2, bottom + 34);
        context.textAlign = 'right';
        for (let value = this.y.least; value <= this.y.most * 1.001; value *= 10) {
            const y = margin.top + (1 - this.y.at(value)) * (zero - margin.top);
            line(margin.left, y, right, y);
            context.fillText(value < 0.001 ? value.toExponential(0) : String(Number(value.toPrecision(3))), margin.left - 6, y + 4);
        }
        context.fillText(this.heat.sampled ? 'none' : 'never', margin.left - 6, zero + floor / 2 + 10);
        line(margin.left, bottom, right, bottom);
        context.save();
        context.translate(13, (margin.top + zero) / 2);
        context.rotate(-Math.PI / 2);
        context.textAlign = 'center';
        context.fillText(this.heat.title, 0, 0);
        context.restore();
        context.globalAlpha = 0.8;
        context.font = 'italic 13px system-ui, sans-serif';
        context.textAlign = 'left';
        context.fillText('hot and short-lived', margin.left + 10, margin.top + 18);
        context.textAlign = 'right';
        context.fillText('cold and long-lived', right - 10, zero - 10);
        context.textAlign = 'right';
        const below = right - margin.left < 320 ? 18 : 0; // beside the other one there is no room
        context.fillText('hot and long-lived', right - 10, margin.top + 18 + below);
        context.globalAlpha = 1;
        context.font = '12px system-ui, sans-serif';
    }

    private tell(context: number): void {
        this.selected = context;
        this.draw();
        if (context < 0) {
            replace(this.said, h('p', null, `${format.plural(this.order.length, 'place')}; a larger circle is more memory. Point at one, or move with the arrow keys.`));
            this.canvas.setAttribute('aria-label', 'Places by lifetime and accesses');
            return;
        }
        const { profile } = this;
        const value = (key: string) => { const each = measure(key)!; const values = each.values(profile); return values ? `${each.title.toLowerCase()} ${each.format(values[context]!)}` : ''; };
        const text = ['bytes', 'peak', 'lifetime-or-age', 'accesses', 'accesses-per-byte', 'sampled-accesses'].map(value).filter(Boolean).join(', ');
        const where = profile.place(context);
        replace(this.said,
            h('p', null, name(profile.title(context)), where ? h('span', { class: 'place' }, h('bdi', null, where)) : null, profile.type(context) ? [' ', name(profile.type(context), 'name type')] : null),
            h('p', null, `${text}. `, h('a', { href: state.link('contexts', { at: profile.column('id')![context]! }) }, 'This place')));
        this.canvas.setAttribute('aria-label', `${profile.title(context)}: ${text}`);
    }

    /* The smallest circle there: it is drawn last. */
    private under(event: MouseEvent): number {
        const box = this.canvas.getBoundingClientRect();
        const x = event.clientX - box.left;
        const y = event.clientY - box.top;
        for (let at = this.order.length - 1; at >= 0; at--) {
            const i = this.order[at]!;
            const reach = Math.max(4, this.pr[i]!);
            if ((this.px[i]! - x) ** 2 + (this.py[i]! - y) ** 2 <= reach * reach)
                return i;
        }
        return -1;
    }

    private listen(): void {
        this.canvas.addEventListener('mousemove', (event) => {
            const found = this.under(event);
            this.canvas.style.cursor = found >= 0 ? 'pointer' : '';
            if (found >= 0 && found !== this.selected)
                this.tell(found);
        });
        this.canvas.addEventListener('click', (event) => {
            const found = this.under(event);
            if (found >= 0)
                state.go('contexts', { at: this.profile.column('id')![found]! });
        });
        this.canvas.addEventListener('keydown', (event) => {
            const at = this.order.indexOf(this.selected);
            const moves: Record<string, number> = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: this.order.length - 1 };
            if (event.ctrlKey || event.metaKey || event.altKey)
                return;
            if (event.key in moves)
                this.tell(this.order[Math.max(0, Math.min(this.order.length - 1, moves[event.key]!))] ?? -1);
            else if (event.key === 'Enter' && this.selected >= 0)
                state.go('contexts', { at: this.profile.column('id')![this.selected]! });
            else
                return;
            event.preventDefault();
        });
    }
}

export const hot: View = {
    key: 'hot',
    title: 'Hot and cold',
    missing: ({ profile }: Page) => {
        if (!density(profile))
            return 'How often memory is used was not observed. “heapwise record --sample-accesses -- PROGRAM” samples it; a program that is built with “heapwise cc” counts every access.';
        return measure('lifetime-or-age')!.values(profile) ? null : 'This profile does not record how long blocks live.';
    },
    show: ({ profile }: Page, root: HTMLElement) => {
        const scatter = new Scatter(profile, root, measure('lifetime-or-age')!.values(profile)!, density(profile)!);
        return () => scatter.end();
    },
};
