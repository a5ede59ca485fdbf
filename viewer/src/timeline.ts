/* timeline.ts - heap and resident memory over time, with the peak marked. A range that is drawn becomes the plot's,
 * says what happened in it, and leads to the places that were in use. */
import uPlot from 'uplot';
import { add, h, replace, themed } from './dom';
import * as format from './format';
import type { Profile } from './model';
import { onTheme } from './shell';
import * as state from './state';
import type { Page } from './view';
import type { Point } from './report';

const live = (point: Point) => Math.max(0, point.sampled?.live_bytes ?? point.live_bytes ?? 0);
const count = (point: Point, key: 'allocations' | 'frees') => point.sampled?.[key] ?? point[key] ?? 0;

function points(profile: Profile): Point[] {
    const found = [...(profile.report.timeline ?? [])];
    const peak = profile.counts.peak_bytes;
    const time = profile.report.totals.peak_time_ns;
    /* The peak lies between points: it is known exactly. */
    if (peak && time !== null && time !== undefined && found.length) {
        let at = found.findIndex((point) => point.time_ns >= time);
        at = at < 0 ? found.length : at;
        const near = found[at] ?? found[at - 1]!;
        if (near.time_ns !== time)
            found.splice(at, 0, { ...near, rss_bytes: null, time_ns: time, live_bytes: peak, sampled: undefined });
    }
    return found;
}

/* What happened in a range, as a sentence with a way on. */
function describe(all: Point[], from: number, to: number, profile: Profile): (Node | string)[] {
    const within = all.filter((point) => point.time_ns >= from && point.time_ns <= to);
    const first = within[0];
    const last = within[within.length - 1];
    if (!first || !last || first === last)
        return ['Nothing was recorded within this range.'];
    const change = live(last) - live(first);
    const text = `${format.duration(from)} to ${format.duration(to)}: ${format.count(count(last, 'allocations') - count(first, 'allocations'))} allocations, ` +
        `${format.count(count(last, 'frees') - count(first, 'frees'))} frees, heap ${format.change(change, format.bytes)}, at most ${format.bytes(Math.max(...within.map(live)))}. `;
    return profile.column('first_ns') ? [text, h('a', { href: state.link('contexts', { from: Math.floor(from), to: Math.ceil(to) }) }, 'The places in use then')] : [text];
}

/* Heapwise's own memory at a time. It was read at a few moments only: between them it is taken to grow evenly. */
function ownAt(profile: Profile): ((time: number) => number) | null {
    const known = profile.moments().filter((each) => each.own > 0);
    if (!known.length)
        return null;
    return (time) => {
        const after = known.findIndex((each) => each.time >= time);
        if (after < 0)
            return known[known.length - 1]!.own;
        const last = known[after - 1] ?? { time: 0, own: 0 };
        const next = known[after]!;
        return next.time > last.time ? last.own + ((next.own - last.own) * (time - last.time)) / (next.time - last.time) : next.own;
    };
}

/* Stripes, for what is there and does not count. */
function stripes(): CanvasPattern | string {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const context = tile.getContext('2d')!;
    context.strokeStyle = themed('--part4');
    context.lineWidth = 2;
    for (const from of [-8, 0, 8]) {
        context.beginPath();
        context.moveTo(from, 8);
        context.lineTo(from + 8, 0);
        context.stroke();
    }
    return context.createPattern(tile, 'repeat') ?? themed('--part4');
}

function peakMark(profile: Profile): uPlot.Plugin {
    const time = profile.report.totals.peak_time_ns;
    return {
        hooks: {
            draw: (plot) => {
                if (time === null || time === undefined || !profile.counts.peak_bytes)
                    return;
                const x = plot.valToPos(time, 'x', true);
                const y = plot.valToPos(profile.counts.peak_bytes, 'y', true);
                const { ctx, bbox } = plot;
                if (x < bbox.left || x > bbox.left + bbox.width)
                    return;
                const scale = window.devicePixelRatio || 1;
                ctx.save();
                ctx.strokeStyle = ctx.fillStyle = themed('--alert');
                ctx.setLineDash([3 * scale, 3 * scale]);
                ctx.lineWidth = scale;
                ctx.beginPath();
                ctx.moveTo(x, y);
                ctx.lineTo(x, bbox.top + bbox.height);
                ctx.stroke();
                ctx.beginPath();
                ctx.arc(x, y, 3.5 * scale, 0, 2 * Math.PI);
                ctx.fill();
                const text = `peak ${format.bytes(profile.counts.peak_bytes)}`;
                ctx.font = `${12 * scale}px system-ui, sans-serif`;
                const wide = ctx.measureText(text).width + 8 * scale;
                ctx.textAlign = x + wide > bbox.left + bbox.width ? 'right' : 'left';
                ctx.fillText(text, x + (ctx.textAlign === 'left' ? 7 : -7) * scale, Math.max(bbox.top + 12 * scale, y - 7 * scale));
                ctx.restore();
            },
        },
    };
}

function options(profile: Profile, width: number, own: boolean, brushed: (from: number, to: number) => void): uPlot.Options {
    const axis = { stroke: themed('--faint'), grid: { stroke: themed('--line'), width: 1 }, ticks: { stroke: themed('--line'), width: 1 }, font: '12px system-ui, sans-serif' };
    return {
        width, height: 240,
        scales: { x: { time: false } },
        legend: { live: true },
        cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
        axes: [
            { ...axis, values: (_plot, splits) => splits.map((value) => format.axis(format.duration(value))), space: 90 },
            { ...axis, values: (_plot, splits) => splits.map((value) => format.axis(format.bytes(value))), size: 78,
                incrs: format.byteSteps },
        ],
        series: [
            { label: 'time', value: (_plot, value) => (value === null ? '–' : format.duration(value)) },
            { label: 'live heap', points: { show: false }, stroke: themed('--series1'), fill: themed('--series1-area'), width: 1.5, value: (_plot, value) => (value === null ? '–' : format.bytes(value)) },
            { label: own ? 'resident, the program’s' : 'resident (RSS)', points: { show: false }, stroke: themed('--series2'), width: 1.5, spanGaps: true, value: (_plot, value) => (value === null ? '–' : format.bytes(value)) },
            ...(own ? [{ label: 'with Heapwise’s own (striped)', points: { show: false }, stroke: themed('--part4'), width: 1, spanGaps: true, value: (_plot: uPlot, value: number | null) => (value === null ? '–' : format.bytes(value)) }] : []),
        ],
        bands: own ? [{ series: [3, 2], fill: stripes() }] : [],
        plugins: [peakMark(profile)],
        hooks: { setSelect: [(plot) => {
            if (plot.select.width > 3)
                brushed(plot.posToVal(plot.select.left, 'x'), plot.posToVal(plot.select.left + plot.select.width, 'x'));
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }] },
    };
}

/* Fills ROOT; returns what ends it. */
export function timeline(page: Page, root: HTMLElement): () => void {
    const { profile } = page;
    const all = points(profile);
    if (all.length < 2) {
        add(root, h('h3', null, 'Memory over time'), h('p', { class: 'empty' }, profile.report.process.runs ? 'A sum of several runs has no timeline.' : profile.count ? 'This profile has no timeline.' : 'Nothing was allocated.'));
        return () => {};
    }
    const end = Math.max(profile.report.process.duration_ns ?? 0, all[all.length - 1]!.time_ns);
    const holder = h('div', { class: 'plot', tabindex: 0, role: 'img', 'aria-label': `Memory over time: the heap was at most ${format.bytes(profile.counts.peak_bytes ?? 0)}. Arrow keys move the range, plus and minus change its length.` });
    const said = h('p', { class: 'range', role: 'status' });
    const own = ownAt(profile);
    const rss = all.map((point) => point.rss_bytes || null);
    const without = rss.map((bytes, index) => (bytes === null ? null : Math.max(0, bytes - (own?.(all[index]!.time_ns) ?? 0))));
    const data: uPlot.AlignedData = [all.map((point) => point.time_ns), all.map(live), without, ...(own ? [rss] : [])];
    let plot: uPlot | null = null;
    const range = () => [Math.max(0, state.getNumber('from', 0)), Math.min(end, state.getNumber('to', end))] as const;
    const show = () => {
        const [from, to] = range();
        plot?.setScale('x', { min: from, max: to });
        const whole = from <= 0 && to >= end;
        replace(said, whole ? 'Select a range with the mouse to see more detail.' : describe(all, from, to, profile), whole ? null : [' ', h('button', { type: 'button', onclick: () => brush(0, end) }, 'Whole run')]);
    };
    const brush = (from: number, to: number) => {
        const whole = from <= 0 && to >= end;
        state.note({ from: whole ? '' : Math.max(0, Math.floor(from)), to: whole ? '' : Math.min(end, Math.ceil(to)) });
        show();
    };
    holder.addEventListener('keydown', (event) => {
        const [from, to] = range();
        const step = (to - from) / 8;
        const moves: Record<string, [number, number]> = {
            ArrowLeft: [Math.max(0, from - step), Math.max(0, from - step) + (to - from)], ArrowRight: [Math.min(end, to + step) - (to - from), Math.min(end, to + step)],
            '+': [from + step, to - step], '-': [from - step, to + step], Escape: [0, end],
        };
        if (!moves[event.key] || event.ctrlKey || event.metaKey)
            return;
        brush(...moves[event.key]!);
        event.preventDefault();
    });
    const make = () => {
        plot?.destroy();
        plot = new uPlot(options(profile, Math.max(320, holder.clientWidth || root.clientWidth || 900), own !== null, brush), data, holder);
        show();
    };
    const moments = profile.moments().filter((each) => each.own > 0);
    const about = own ? h('p', { class: 'summary own-memory' }, `Striped: Heapwise’s own memory, ${moments.map((each) => `${format.bytes(each.own)} at ${format.duration(each.time)}`).join(', ')}; estimated in between. The line below it is what the program has.`) : null;
    add(root, h('h3', null, 'Memory over time'), holder, said, about);
    const size = new ResizeObserver(() => (plot ? plot.setSize({ width: Math.max(320, holder.clientWidth), height: 240 }) : make()));
    size.observe(holder);
    const themeOff = onTheme(make);
    return () => {
        size.disconnect();
        themeOff();
        plot?.destroy();
    };
}
