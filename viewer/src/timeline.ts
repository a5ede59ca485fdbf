/* timeline.ts - heap and resident memory over time, with the peak and dumps marked. A click chooses a moment, a drag a
 * range, which becomes the plot's: all views show what is known of that time (time.ts). */
import uPlot from 'uplot';
import { add, h, replace, themed } from './dom';
import * as format from './format';
import type { Profile } from './model';
import { markStrip } from './regions';
import { onTheme } from './shell';
import { choose, chosen, describe, momentsOf, range, reset } from './time';
import type { Page } from './view';

/* The moments at which Heapwise's own memory was read: by time. */
function ownRead(profile: Profile): { time: number; own: number }[] {
    return [...profile.moments().map(({ time, own }) => ({ time, own })), ...(profile.dumps?.own ?? [])].filter(({ own }) => own > 0).sort((a, b) => a.time - b.time);
}

/* Heapwise's own memory at a time. It was read at a few moments only. Between them it is taken to grow as the greatest
 * heap so far does, since it is mostly what is kept for each block; evenly where that does not grow. */
export function ownAt(profile: Profile): ((time: number) => number) | null {
    const known = ownRead(profile);
    if (!known.length)
        return null;
    const { sightings } = momentsOf(profile);
    const most = new Float64Array(sightings.length);
    sightings.forEach(({ live }, i) => (most[i] = Math.max(live, most[i - 1] ?? 0)));
    const grown = (time: number) => {
        let low = 0;
        for (let high = sightings.length; low < high; ) {
            const middle = (low + high) >> 1;
            if (sightings[middle]!.time <= time)
                low = middle + 1;
            else
                high = middle;
        }
        return most[low - 1] ?? 0;
    };
    return (time) => {
        const after = known.findIndex((each) => each.time >= time);
        if (after < 0)
            return known[known.length - 1]!.own;
        const last = known[after - 1] ?? { time: 0, own: 0 };
        const next = known[after]!;
        if (next.time <= last.time)
            return next.own;
        const [from, to] = [grown(last.time), grown(next.time)];
        return last.own + (next.own - last.own) * (to > from && last.own < next.own ? (grown(time) - from) / (to - from) : (time - last.time) / (next.time - last.time));
    };
}

/* Stripes, for what is there and does not count. */
export function stripes(ground = ''): CanvasPattern | string {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const context = tile.getContext('2d')!;
    if (ground) {
        context.fillStyle = ground;
        context.fillRect(0, 0, 8, 8);
    }
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

/* Dumps, and the moment that was chosen. */
function timeMarks(profile: Profile): uPlot.Plugin {
    const moments = momentsOf(profile);
    return {
        hooks: {
            draw: ({ ctx, bbox, valToPos }) => {
                const scale = window.devicePixelRatio || 1;
                const line = (time: number, color: string, dash: number[], wide: number) => {
                    const x = valToPos(time, 'x', true);
                    if (x < bbox.left || x > bbox.left + bbox.width)
                        return;
                    ctx.strokeStyle = color;
                    ctx.setLineDash(dash.map((each) => each * scale));
                    ctx.lineWidth = wide * scale;
                    ctx.beginPath();
                    ctx.moveTo(x, bbox.top);
                    ctx.lineTo(x, bbox.top + bbox.height);
                    ctx.stroke();
                };
                ctx.save();
                ctx.font = `${11 * scale}px system-ui, sans-serif`;
                ctx.textAlign = 'left';
                let room = -Infinity; // where the latest title ends
                for (const each of moments.named.filter(({ counts, short }) => counts && short !== 'end')) {
                    line(each.time, themed('--faint'), [1, 3], 1);
                    const x = valToPos(each.time, 'x', true) + 3 * scale;
                    const wide = ctx.measureText(each.short).width;
                    if (x < Math.max(bbox.left, room) || x + wide > bbox.left + bbox.width)
                        continue;
                    ctx.fillStyle = themed('--faint');
                    ctx.fillText(each.short, x, bbox.top + 10 * scale);
                    room = x + wide;
                }
                const what = chosen(profile);
                if (what && 'at' in what)
                    line(what.at.time, themed('--focus'), [], 2);
                ctx.restore();
            },
        },
    };
}

function options(profile: Profile, width: number, own: boolean, brushed: (from: number, to: number) => void, picked: (time: number, near: number) => void, marks: uPlot.Plugin): uPlot.Options {
    let dragged = false;
    const axis = { stroke: themed('--faint'), grid: { stroke: themed('--line'), width: 1 }, ticks: { stroke: themed('--line'), width: 1 }, font: '12px system-ui, sans-serif' };
    return {
        width, height: 240,
        scales: { x: { time: false }, y: { range: (_plot, _least, most) => [0, (most || 1) * 1.08] } },
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
        plugins: [peakMark(profile), timeMarks(profile), marks],
        hooks: { init: [(plot) => {
            plot.over.addEventListener('mousedown', () => (dragged = false));
            plot.over.addEventListener('click', (event) => {
                const x = event.clientX - plot.over.getBoundingClientRect().left;
                if (!dragged)
                    picked(plot.posToVal(x, 'x'), plot.posToVal(6, 'x') - plot.posToVal(0, 'x'));
            });
        }], setSelect: [(plot) => {
            dragged = plot.select.width > 3;
            if (dragged)
                brushed(plot.posToVal(plot.select.left, 'x'), plot.posToVal(plot.select.left + plot.select.width, 'x'));
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }] },
    };
}

/* Fills ROOT; returns what ends it. CHANGED is called when another moment or range was chosen. */
export function timeline(page: Page, root: HTMLElement, changed: () => void): () => void {
    const profile = page.profile.whole;
    const moments = momentsOf(profile);
    const all = moments.sightings;
    if (!moments.known) {
        add(root, h('h3', null, 'Memory over time'), h('p', { class: 'empty' }, profile.report.process.runs ? 'A sum of several runs has no timeline.' : profile.count ? 'This profile has no timeline.' : 'Nothing was allocated.'));
        return () => {};
    }
    const { end } = moments;
    const holder = h('div', { class: 'plot', tabindex: 0, role: 'img', 'aria-label': `Memory over time: the heap was at most ${format.bytes(profile.counts.peak_bytes ?? 0)}. ` +
        'Arrow keys choose a moment, or move a range; plus and minus change the length of the range; Page Up and Page Down go to moments that are recorded by place.' });
    const said = h('p', { class: 'range', role: 'status' });
    const own = ownAt(profile);
    const rss = all.map((point) => point.rss);
    const without = rss.map((bytes, index) => (bytes === null ? null : Math.max(0, bytes - (own?.(all[index]!.time) ?? 0))));
    const data: uPlot.AlignedData = [all.map(({ time }) => time), all.map(({ live }) => live), without, ...(own ? [rss] : [])];
    let plot: uPlot | null = null;
    const show = () => {
        const { from, to } = range(profile);
        plot?.setScale('x', { min: from, max: to });
        const words = describe(profile, true);
        const { whole } = range(profile);
        replace(said, words.length ? words : whole ? 'Click a moment, or drag over a range: every view then shows what is known of it.' : 'Nothing was recorded within this range.',
            words.length || !whole ? [' ', h('button', { type: 'button', onclick: wholeRun, title: 'Escape' }, 'Whole run')] : null);
    };
    const choosing = (values: Parameters<typeof choose>[0], quiet = false) => {
        choose(values, quiet);
        show();
        changed();
    };
    const wholeRun = () => { if (reset()) { show(); changed(); } };
    const brush = (from: number, to: number, quiet = false) => {
        const whole = from <= 0 && to >= end;
        choosing({ moment: '', from: whole ? '' : Math.max(0, Math.floor(from)), to: whole ? '' : Math.min(end, Math.ceil(to)) }, quiet);
    };
    /* A moment; one that is recorded by place if it is NEAR. */
    const pick = (time: number, near: number, quiet = false) => {
        const named = moments.named.filter((each) => Math.abs(each.time - time) <= near).sort((a, b) => Math.abs(a.time - time) - Math.abs(b.time - time))[0];
        choosing({ moment: Math.floor((named ?? moments.nearest(Math.max(0, Math.min(end, time)))).time) }, quiet);
    };
    const moment = () => { const what = chosen(profile); return what && 'at' in what ? what.at.time : null; };
    /* The next sighting that is seen apart from the present one. */
    const beside = (forward: boolean) => {
        const { from, to } = range(profile);
        const now = moment();
        if (now === null)
            return profile.report.totals.peak_time_ns ?? from;
        const least = (to - from) / 200;
        const times = moments.between(from, to).map(({ time }) => time);
        return forward ? times.find((time) => time >= now + least) ?? times[times.length - 1] ?? now : [...times].reverse().find((time) => time <= now - least) ?? times[0] ?? now;
    };
    const recorded = (forward: boolean) => {
        const now = moment() ?? (forward ? -1 : Infinity);
        const times = moments.named.map(({ time }) => time);
        return (forward ? times.find((time) => time > now + 1) : [...times].reverse().find((time) => time < now - 1)) ?? now;
    };
    holder.addEventListener('keydown', (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey)
            return;
        const { from, to, whole } = range(profile);
        const step = (to - from) / 8;
        const forward = event.key === 'ArrowRight' || event.key === 'PageDown';
        if (event.key === 'Escape') {
            if (!reset())
                return;
            show();
            changed();
        } else if (event.key === '+' || event.key === '-')
            brush(from + (event.key === '+' ? step : -step), to - (event.key === '+' ? step : -step), !whole);
        else if ((event.key === 'ArrowLeft' || event.key === 'ArrowRight') && (whole || moment() !== null))
            pick(beside(forward), 0, moment() !== null);
        else if (event.key === 'ArrowLeft')
            brush(Math.max(0, from - step), Math.max(0, from - step) + (to - from), true);
        else if (event.key === 'ArrowRight')
            brush(Math.min(end, to + step) - (to - from), Math.min(end, to + step), true);
        else if (event.key === 'PageUp' || event.key === 'PageDown') {
            const time = recorded(forward);
            if (Number.isFinite(time) && time >= 0)
                pick(time, 1, moment() !== null);
        } else
            return;
        event.preventDefault();
    });
    const marks = markStrip(profile, (time) => pick(time, 0));
    const make = () => {
        plot?.destroy();
        plot = new uPlot(options(profile, Math.max(320, holder.clientWidth || root.clientWidth || 900), own !== null, brush, pick, marks.plugin), data, holder);
        show();
    };
    const read = ownRead(profile);
    const about = own ? h('p', { class: 'summary own-memory' }, `Striped: Heapwise’s own memory, ${read.map((each) => `${format.bytes(each.own)} at ${format.duration(each.time)}`).join(', ')}; estimated in between. The line below it is what the program has.`) : null;
    add(root, h('h3', null, 'Memory over time'), marks.element, holder, marks.onPaper, said, about);
    const size = new ResizeObserver(() => (plot ? plot.setSize({ width: Math.max(320, holder.clientWidth), height: 240 }) : make()));
    size.observe(holder);
    const themeOff = onTheme(make);
    return () => {
        size.disconnect();
        themeOff();
        plot?.destroy();
    };
}
