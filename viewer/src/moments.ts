/* moments.ts - what is known of the time before the end: the process at the points of its timeline, places at the start,
 * at dumps (src/report/page/page_moments.c), at the peak and at the end. Between these a place is known as long as it did
 * not change: before its first block, after its last event, or with the same counts at both ends. */
import { decode, type Column, type Columns } from './decode';
import type { Profile } from './model';
import { liveAt, marksOf } from './regions';
import type { Point } from './report';

/* The process at one time. */
export interface Sighting {
    time: number;
    live: number;
    allocations: number | null; // so far; null: not known (the peak)
    frees: number | null;
    rss: number | null;
}

/* A moment at which places are known. */
export interface Named {
    time: number;
    title: string; // "the peak"
    short: string; // "peak"
    counts: boolean; // not only what was live, but all that had happened
}

/* A value by place. UNKNOWN: those of which it is not recorded; they have 0. */
export interface Then {
    live: Float64Array;
    blocks: Float64Array;
    unknown: Uint8Array;
}

export interface Until {
    allocations: Float64Array;
    bytes: Float64Array;
    frees: Float64Array;
    unknown: Uint8Array;
}

const margin = 1000; // ns: clocks of two profiles of a process may differ by so much
const rowColumns = ['live_bytes', 'live_blocks', 'allocations', 'bytes', 'frees', 'reallocations', 'last_ns'] as const;
type RowColumn = (typeof rowColumns)[number];

/* Everything about places at one time. */
interface Snapshot extends Named {
    column: (name: RowColumn) => Column;
    unknown: Uint8Array | null;
}

/* The dumps in the page, as they are stored. */
export class Dumps {
    readonly count: number;

    private constructor(
        private readonly columns: Columns,
        private readonly strings: string[],
    ) {
        this.count = this.of('dump.time_ns').length;
    }

    static async read(base64: string): Promise<Dumps> {
        const { columns, strings } = await decode(base64);
        return new Dumps(columns, strings);
    }

    of(name: string): Column {
        return this.columns.get(name) ?? new Float64Array(0);
    }

    /* Heapwise's own memory at the dumps that have it. */
    get own(): { time: number; own: number }[] {
        return Array.from(this.of('dump.own'), (own, i) => ({ time: this.of('dump.time_ns')[i]!, own }));
    }

    file(index: number): string {
        return this.strings[this.of('dump.file')[index] ?? 0] ?? '';
    }

    /* A column of dump INDEX by place. */
    spread(index: number, name: string, places: number): Float64Array {
        const rows = this.of('dump.rows');
        const from = rows.subarray(0, index).reduce((sum, each) => sum + each, 0);
        const context = this.of('at.context');
        const values = this.of(`at.${name}`);
        const spread = new Float64Array(places);
        for (let row = from; row < from + (rows[index] ?? 0); row++)
            if (context[row]! < places)
                spread[context[row]!] = values[row] ?? 0;
        return spread;
    }
}

export class Moments {
    readonly sightings: Sighting[];
    readonly named: Named[]; // by time: dumps, the peak, the end
    readonly end: number;
    private readonly snapshots: Snapshot[]; // by time, the start and the end too
    private readonly changes: boolean; // whether a place that is the same before and after was so in between

    constructor(
        readonly profile: Profile,
        readonly dumps: Dumps | null,
    ) {
        const { report } = profile;
        const timeline = report.timeline ?? [];
        this.end = Math.max(report.process.duration_ns ?? 0, timeline[timeline.length - 1]?.time_ns ?? 0);
        /* Blocks from before a fork or a reset are freed without a trace in the counts of their places. */
        this.changes = Boolean(report.totals['inherited' as keyof typeof report.totals]);
        this.snapshots = this.allSnapshots();
        const peak = profile.counts.peak_bytes ? report.totals.peak_time_ns : null;
        this.named = this.snapshots.filter(({ short }) => short !== 'start');
        if (peak !== null && peak !== undefined && profile.has('peak_bytes'))
            this.named = [...this.named, { time: peak, title: 'the peak', short: 'peak', counts: false }].sort((a, b) => a.time - b.time);
        this.sightings = timeline.length ? this.allSightings(timeline, peak ?? null) : [];
    }

    get known(): boolean {
        return this.sightings.length > 1 && (this.profile.count > 0 || (this.profile.report.timeline?.length ?? 0) > 1);
    }

    private allSnapshots(): Snapshot[] {
        const { profile, dumps } = this;
        const nothing = new Float64Array(profile.count);
        const known = new Map<string, Column>();
        const remember = (key: string, make: () => Column) => {
            const column = known.get(key) ?? make();
            known.set(key, column);
            return column;
        };
        const last = () => Float64Array.from(profile.column('last_alloc_ns') ?? nothing, (time, i) => Math.max(time, profile.column('last_free_ns')?.[i] ?? 0));
        const found: Snapshot[] = this.changes ? [] : [{ time: 0, title: 'the start', short: 'start', counts: true, column: () => nothing, unknown: null }];
        for (let i = 0; i < (dumps?.count ?? 0); i++) {
            const unknown = dumps!.spread(i, 'unknown', profile.count);
            found.push({ time: dumps!.of('dump.time_ns')[i]!, title: `dump ${i + 1} (${dumps!.file(i)})`, short: `dump ${i + 1}`, counts: true,
                column: (name) => remember(`${i}.${name}`, () => dumps!.spread(i, name, profile.count)), unknown: unknown.some((each) => each > 0) ? Uint8Array.from(unknown) : null });
        }
        if (profile.has('live_bytes'))
            found.push({ time: this.end, title: 'the end', short: 'end', counts: true, unknown: null,
                column: (name) => (name === 'last_ns' ? remember('last', last) : profile.column(name) ?? nothing) });
        return found;
    }

    private allSightings(timeline: Point[], peak: number | null): Sighting[] {
        const { profile, dumps } = this;
        const found: Sighting[] = timeline.map((point) => ({
            time: point.time_ns, live: Math.max(0, point.sampled?.live_bytes ?? point.live_bytes ?? 0), allocations: point.sampled?.allocations ?? point.allocations ?? 0,
            frees: point.sampled?.frees ?? point.frees ?? 0, rss: point.rss_bytes || null,
        }));
        const put = (each: Sighting) => {
            const at = found.findIndex(({ time }) => time >= each.time);
            if (at < 0)
                found.push(each);
            else if (found[at]!.time > each.time)
                found.splice(at, 0, each);
        };
        if (!this.changes)
            put({ time: 0, live: 0, allocations: 0, frees: 0, rss: null });
        for (let i = 0; i < (dumps?.count ?? 0); i++)
            put({ time: dumps!.of('dump.time_ns')[i]!, live: Math.max(0, dumps!.of('dump.live_bytes')[i] ?? 0), allocations: dumps!.of('dump.allocations')[i] ?? 0, frees: dumps!.of('dump.frees')[i] ?? 0, rss: dumps!.of('dump.rss')[i] || null });
        for (const mark of marksOf(profile))
            put({ time: mark.time_ns, live: liveAt(mark), allocations: null, frees: null, rss: null });
        /* The peak lies between points: it is known exactly. */
        if (peak !== null)
            put({ time: peak, live: profile.counts.peak_bytes ?? 0, allocations: null, frees: null, rss: null });
        return found;
    }

    /* The sighting nearest to a time; COUNTS: one with counts. */
    nearest(time: number, counts = false): Sighting {
        return this.sightings.reduce((best, each) => ((!counts || each.allocations !== null) && (best.allocations === null && counts || Math.abs(each.time - time) < Math.abs(best.time - time)) ? each : best));
    }

    /* The sightings that a range lies between, where none are near its ends. */
    around(from: number, to: number): [Sighting, Sighting] {
        const counted = this.sightings.filter(({ allocations }) => allocations !== null);
        const before = counted.filter(({ time }) => time <= from);
        return [before[before.length - 1] ?? counted[0]!, counted.find(({ time }) => time >= to) ?? counted[counted.length - 1]!];
    }

    /* Resident memory as it was read latest. */
    rss(time: number): number | null {
        return this.sightings.reduce((latest, each) => (each.time <= time && each.rss !== null ? each.rss : latest), null as number | null);
    }

    /* The sightings from the one at FROM to the one at TO. */
    between(from: number, to: number): Sighting[] {
        return this.sightings.filter(({ time }) => time >= from && time <= to);
    }

    /* Fills what is known of every place at TIME; PUT gets a snapshot whose values hold then, null: it had nothing. */
    private each(time: number, put: (place: number, from: Snapshot | null) => void): Uint8Array {
        const { snapshots, profile } = this;
        const unknown = new Uint8Array(profile.count);
        const first = profile.column('first_ns');
        const at = snapshots.find((each) => Math.abs(each.time - time) < 1);
        const after = snapshots.find((each) => each.time > time);
        const before = [...snapshots].reverse().find((each) => each.time <= time);
        const same = before && after && (['allocations', 'frees', 'reallocations'] as const).map((name) => [before.column(name), after.column(name)] as const);
        const reallocated = this.profile.column('reallocations') !== null || this.profile.sampled;
        for (let i = 0; i < profile.count; i++) {
            if (at) {
                if (at.unknown?.[i])
                    unknown[i] = 1;
                else
                    put(i, at);
            } else if (this.changes)
                unknown[i] = 1;
            else if (first && first[i]! > time + margin)
                put(i, null);
            else if (!before || !after || before.unknown?.[i] || after.unknown?.[i] || !same || !reallocated)
                unknown[i] = 1;
            else if (same.every(([one, other]) => one[i] === other[i]))
                put(i, before);
            else if (same[2]![0][i] === same[2]![1][i] && after.column('last_ns')[i]! + margin <= time)
                put(i, after);
            else
                unknown[i] = 1;
        }
        return unknown;
    }

    /* What was live. */
    then(time: number): Then {
        const { profile } = this;
        const live = new Float64Array(profile.count);
        const blocks = new Float64Array(profile.count);
        const peak = this.named.find(({ short, time: when }) => short === 'peak' && Math.abs(when - time) < 1);
        const peakBytes = profile.column('peak_bytes');
        if (peak && peakBytes) {
            const peakBlocks = profile.column('peak_blocks');
            for (let i = 0; i < profile.count; i++) {
                live[i] = Math.max(0, peakBytes[i]!);
                blocks[i] = Math.max(0, peakBlocks?.[i] ?? 0);
            }
            return { live, blocks, unknown: new Uint8Array(profile.count) };
        }
        const unknown = this.each(time, (i, from) => {
            if (from) {
                live[i] = Math.max(0, from.column('live_bytes')[i]!);
                blocks[i] = Math.max(0, from.column('live_blocks')[i]!);
            }
        });
        return { live, blocks, unknown };
    }

    /* What had happened. */
    until(time: number): Until {
        const { profile } = this;
        const found = { allocations: new Float64Array(profile.count), bytes: new Float64Array(profile.count), frees: new Float64Array(profile.count) };
        const unknown = this.each(time, (i, from) => {
            for (const name of ['allocations', 'bytes', 'frees'] as const)
                found[name][i] = from ? from.column(name)[i]! : 0;
        });
        return { ...found, unknown };
    }
}
