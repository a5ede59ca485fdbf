/* regions.ts - what the program measured and named itself: regions as a table, marks along the timeline. */
import type uPlot from 'uplot';
import { h, name, replace, themed } from './dom';
import * as format from './format';
import type { Profile } from './model';
import type { Mark, Region } from './report';

const apart = 14; // CSS pixels: marks that are nearer are one
const onPaperMost = 100; // marks that are named there

/* As in the text report: sums over the regions of a name that ended. */
function rowOf(region: Region): HTMLElement {
    const of = region.sampled ?? region;
    const known = region.ended > 0;
    const cell = (text: string) => h('td', { class: 'number' }, known ? text : '–');
    const kept = of.live_bytes ?? 0;
    return h('tr', null, h('td', { class: 'number' }, format.count(region.ended)), cell(format.count(of.allocations ?? 0)), cell(format.bytes(of.bytes ?? 0)),
        cell(kept ? `${kept > 0 ? '+' : '−'}${format.bytes(Math.abs(kept))}` : format.bytes(0)), cell(format.bytes(of.peak_bytes ?? 0)), cell(format.duration(region.total_ns ?? 0)),
        h('td', null, h('bdi', null, name(region.name || '(no name)')), h('span', { class: 'place' }, region.scope === 'process' ? ' of the process' : ' of a thread')));
}

/* Nothing where the program measured none. */
export function regions(profile: Profile): HTMLElement | null {
    const all = profile.report.regions ?? [];
    if (!all.length)
        return null;
    const column = (title: string, hint: string) => h('th', { scope: 'col', title: hint }, title);
    const open = all.some(({ begun, ended }) => begun > ended);
    return h('section', { class: 'regions' }, h('h3', null, all.some(({ sampled }) => sampled) ? 'Regions (estimated)' : 'Regions'),
        h('div', { class: 'wide' }, h('table', { class: 'functions' },
            h('thead', null, h('tr', null, column('times', 'Regions of this name that ended'), column('allocations', 'Blocks allocated in them'), column('bytes', 'Bytes allocated in them'), column('kept', 'Live bytes at the end minus those at the start'),
                column('peak', 'Greatest rise of the live bytes in one of them'), column('time', 'Their durations, added up'), column('region', 'The name that the program gave'))),
            h('tbody', null, all.map(rowOf)))),
        h('p', { class: 'summary' }, 'What the program measured with heapwise_region_begin: sums over the whole run; the peak is that of one region.', open ? ' Some regions did not end, or could not be measured: no number includes them.' : ''));
}

/* ---- marks ---- */

export function marksOf(profile: Profile): Mark[] {
    return profile.report.marks ?? [];
}

export function liveAt(mark: Mark): number {
    return Math.max(0, mark.sampled?.live_bytes ?? mark.live_bytes ?? 0);
}

function words(marks: Mark[]): string {
    const said = (mark: Mark) => `${mark.name || '(no name)'}, ${format.duration(mark.time_ns)}, ${format.bytes(liveAt(mark))} live`;
    return marks.length > 4 ? `${marks.slice(0, 3).map(said).join('; ')}; and ${format.count(marks.length - 3)} more marks` : marks.map(said).join('; ');
}

/* Marks above the plot as buttons, each above its time. PICKED is called with the time of one. */
export function markStrip(profile: Profile, picked: (time: number) => void): { element: HTMLElement | null; onPaper: HTMLElement | null; plugin: uPlot.Plugin } {
    const all = marksOf(profile);
    const list = h('ul', { class: 'marks', 'aria-label': 'Marks of the program' });
    let drawn = '';
    const draw = (plot: uPlot) => {
        const { left, top, width, height } = plot.bbox;
        const scale = window.devicePixelRatio || 1;
        const shown: { at: number; marks: Mark[] }[] = [];
        plot.ctx.save();
        plot.ctx.strokeStyle = themed('--part2');
        plot.ctx.lineWidth = scale;
        for (const mark of all) {
            const x = plot.valToPos(mark.time_ns, 'x', true);
            if (x < left - 1 || x > left + width + 1)
                continue;
            plot.ctx.beginPath();
            plot.ctx.moveTo(x, top);
            plot.ctx.lineTo(x, top + height);
            plot.ctx.globalAlpha = 0.5;
            plot.ctx.stroke();
            const latest = shown[shown.length - 1];
            if (latest && x / scale - latest.at < apart)
                latest.marks.push(mark);
            else
                shown.push({ at: x / scale, marks: [mark] });
        }
        plot.ctx.restore();
        const key = shown.map(({ at, marks }) => `${at.toFixed(0)}:${marks.length}`).join();
        if (key === drawn)
            return; // the focus stays where it is
        drawn = key;
        replace(list, shown.map(({ at, marks }) => h('li', { style: { left: `${at}px` }, class: at > (left + width) / scale / 2 ? 'late' : null },
            h('button', { type: 'button', 'aria-label': `Mark: ${words(marks)}`, 'data-mark': words(marks), onclick: () => picked(marks[0]!.time_ns) }, marks.length > 1 ? format.count(marks.length) : '▾'))));
    };
    const named = all.slice(0, onPaperMost).map((mark) => words([mark])).join('; ') + (all.length > onPaperMost ? `; and ${format.count(all.length - onPaperMost)} more` : '');
    return { element: all.length ? list : null, onPaper: all.length ? h('p', { class: 'summary on-paper' }, `Marks: ${named}.`) : null, plugin: { hooks: all.length ? { draw } : {} } };
}
