/* prediction.ts - what another allocator would make of the run: predicted from the profile, and measured where the page
 * was made with the runs of "heapwise allocators --json". */
import { h, name, svg } from './dom';
import * as format from './format';
import type { Maybe, Report, Speedup } from './report';

interface Entry {
    allocator: string;
    version: string;
    predicted: Maybe<Speedup>;
    measured: Maybe<Speedup>;
    run: NonNullable<Report['tried']>[number] | null;
    problem: string;
}

function whole(given: Maybe<Partial<Speedup>>): Maybe<Speedup> {
    const { speedup, low, high } = given ?? {};
    return typeof speedup === 'number' ? { speedup, low: typeof low === 'number' ? low : speedup, high: typeof high === 'number' ? high : speedup } : null;
}

function entries(report: Report): Entry[] {
    const found: Entry[] = (report.allocator?.prediction ?? []).map((each) => ({
        allocator: each.allocator, version: each.version ?? '', problem: each.problem ?? '', run: null,
        predicted: whole({ speedup: each.speedup ?? undefined, low: each.low ?? undefined, high: each.high ?? undefined }), measured: whole({ speedup: each.measured ?? undefined }),
    }));
    for (const run of report.tried ?? []) {
        let entry = found.find((each) => each.allocator === run.allocator);
        if (!entry) {
            entry = { allocator: run.allocator, version: run.version ?? '', problem: '', predicted: whole(run.predicted), measured: null, run: null };
            found.push(entry);
        }
        Object.assign(entry, { run, measured: whole(run.measured), problem: run.note ?? entry.problem });
    }
    return found;
}

const times = (value: number) => `${value.toFixed(2)}×`;
const range = (of: Maybe<Speedup>) => (of ? `${times(of.speedup)} (${of.low.toFixed(2)}–${of.high.toFixed(2)})` : '–');

/* Two bars on one scale, predicted above and measured below; the line is the run as it was. */
function picture(entry: Entry, least: number, most: number): SVGElement {
    const x = (value: number) => ((value - least) / (most - least)) * 560;
    const bar = (of: Maybe<Speedup>, y: number, kind: string) =>
        of ? [svg('rect', { x: x(of.low), width: Math.max(2, x(of.high) - x(of.low)), y: y + 2, height: 5, class: `${kind} faint` }), svg('rect', { x: x(of.speedup) - 2, width: 4, y, height: 9, class: kind })] : [];
    return svg('svg', { viewBox: '0 0 560 24', class: 'times', role: 'img', 'aria-label': `predicted ${range(entry.predicted)}, measured ${range(entry.measured)}`, preserveAspectRatio: 'none' },
        svg('line', { x1: x(1), x2: x(1), y1: 0, y2: 24, class: 'mean' }), bar(entry.predicted, 2, 'bar'), bar(entry.measured, 13, 'bar measured'));
}

/* The section; null when there is nothing. */
export function prediction(report: Report): HTMLElement | null {
    const found = entries(report);
    if (!found.length)
        return null;
    const runs = found.some((each) => each.run);
    const ends = found.flatMap((each) => [each.predicted, each.measured]).flatMap((each) => (each ? [each.low, each.high] : []));
    const least = Math.max(0, Math.min(0.9, ...ends) - 0.05);
    const most = Math.max(1.1, ...ends) + 0.05;
    const number = (text: string) => h('td', { class: 'number' }, text);
    const head = (text: string) => h('th', { scope: 'col', class: 'number' }, text);
    const row = (each: Entry) => {
        const { run } = each;
        return h('tr', null,
            h('td', { class: 'text' }, name(each.version ? `${each.allocator} ${each.version}` : each.allocator), run?.present ? ' (as it is)' : run?.chosen ? ' (to choose)' : null),
            number(range(each.predicted)), number(range(each.measured)),
            runs ? [number(run?.time_s ? format.duration(run.time_s * 1e9) : '–'), number(run?.peak_rss_bytes ? format.bytes(run.peak_rss_bytes) : '–'), number(run?.page_faults ? format.count(run.page_faults) : '–')] : null,
            each.predicted || each.measured ? h('td', { class: 'picture' }, picture(each, least, most)) : h('td', null, h('bdi', null, each.problem)));
    };
    const notes = found.filter((each) => each.problem && (each.predicted || each.measured)).map((each) => h('li', null, name(each.allocator), ': ', h('bdi', null, each.problem)));
    return h('section', null,
        h('h3', null, 'With another allocator: predicted, and measured where it was tried'),
        h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Other allocators' }, h('table', null,
            h('thead', null, h('tr', null, h('th', { scope: 'col', class: 'text' }, 'allocator'), head('speed-up predicted'), head('measured'), runs ? ['time', 'resident', 'page faults'].map(head) : null,
                h('th', { scope: 'col', class: 'text' }, `${least.toFixed(2)} to ${most.toFixed(2)}: predicted above, measured below; the line is the present allocator`))),
            h('tbody', null, found.map(row)))),
        notes.length ? h('ul', { class: 'gaps' }, notes) : null,
        runs ? null : h('p', { class: 'summary' }, 'Not measured: “heapwise allocators --json -- PROGRAM” measures them, and “heapwise view --allocators” shows the results here.'));
}
