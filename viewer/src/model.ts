/* model.ts - one profile: columns of contexts, the tree of calls, names. Made from what decode.ts read; nothing here
 * knows how it is shown. */
import { decode, visible, type Column, type Columns, type Parts } from './decode';
import type { Dumps } from './moments';
import type { Counts, Report } from './report';

export interface Frame {
    name: string; // the function, or module+offset: never empty
    file: string; // '' when not known
    line: number; // 0 when not known
    wrapper: boolean; // may be folded
    module: string; // path, '' when not known
    address: number;
}

export const enum ModuleKind {
    Program,
    System,
    Generated,
}

export function baseName(path: string): string {
    return path.slice(path.lastIndexOf('/') + 1);
}

/* Functions that start a process or a thread: above them nothing is shown. */
const startCode = /^(_start|__libc_start_\w+|start_thread|__?clone3?|_dl_start_user)$/;
const nothing = new Float64Array(0);

/* A moment at which the parts of resident memory were read; other keys as in the JSON report. */
export interface Moment {
    moment: string;
    time: number;
    rss: number;
    own: number; // Heapwise's
    live: number | null; // bytes of blocks; an estimate in sampled runs
    [key: string]: unknown;
}

function asMoments(all: Report['memory']): Moment[] {
    return (all ?? []).map((each) => {
        const live = (each['sampled'] as unknown as Counts | undefined)?.live_bytes ?? each['live_bytes'];
        return {
            ...each, moment: String(each['moment'] ?? ''), time: Number(each['time_ns'] ?? 0), rss: Number(each['rss_bytes'] ?? 0), own: Number(each['runtime_bytes'] ?? 0),
            live: live === undefined || live === null ? null : Math.max(0, Number(live)),
        };
    }).sort((a, b) => a.time - b.time);
}

export class Profile {
    readonly report: Report;
    readonly count: number;
    readonly frameName: Int32Array; // by frame: number of its name in `names`
    readonly names: string[] = []; // of functions, each once
    readonly firstFrame: Int32Array; // by location, and one more
    readonly parent: Int32Array; // by node; 0 is the root
    readonly location: Int32Array; // by node
    readonly leaf: Int32Array; // by context: node
    readonly headline: Int32Array; // by context: place in the stack
    readonly total: { peak: number; bytes: number };
    leftOut: string[] = []; // what the user's rules leave out: sentences
    selection: string[] = []; // these, and what is folded
    private readonly headNames: Int32Array;
    private readonly byId = new Map<number, number>();
    /* Of a part of the run (slice): the profile of all of it, which has the same contexts; else itself. */
    readonly whole: Profile = this;
    /* Of a part of the run, by context: what happened there then is not recorded. */
    readonly unknown: Uint8Array | null = null;
    dumps: Dumps | null = null;

    private constructor(
        private readonly columns: Columns,
        private readonly parts: Parts,
        report: Report,
    ) {
        this.report = report;
        this.count = this.need('context.id').length;
        const counts = this.need('location.frames');
        this.firstFrame = new Int32Array(counts.length + 1);
        for (let i = 0; i < counts.length; i++)
            this.firstFrame[i + 1] = this.firstFrame[i]! + counts[i]!;
        this.frameName = this.nameFrames();
        const above = this.need('node.above');
        this.parent = new Int32Array(above.length);
        for (let node = 0; node < above.length; node++)
            this.parent[node] = Math.max(0, node - above[node]!);
        this.location = new Int32Array(this.need('node.location'));
        this.leaf = new Int32Array(this.need('context.leaf'));
        this.headline = new Int32Array(this.need('context.headline'));
        this.headNames = new Int32Array(this.count).fill(-2);
        this.total = { peak: this.counts.peak_bytes ?? 0, bytes: this.counts.bytes_allocated ?? 0 };
    }

    /* A profile as far as FIRST has it: what the overview shows of a whole run. Before anything else is asked for,
     * readRest() is to end. */
    static async read(first: string): Promise<Profile> {
        const parts = await decode(first);
        const toCome = parts.texts.get('to come'); // without it, all is there
        parts.columns.toCome = toCome === undefined ? null : new Set(toCome.split('\n').map((name) => `context.${name}`));
        const text = parts.texts.get('report');
        if (!text)
            throw new Error('there is no report in this page');
        const clean = (_key: string, value: unknown) => {
            if (typeof value === 'string')
                return visible(value);
            if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).every((key) => visible(key) === key))
                return value;
            return Object.fromEntries(Object.entries(value).map(([key, each]) => [visible(key), each]));
        };
        /* Nearly all reports have nothing to make visible, and no escaped characters that might be. */
        const report = JSON.parse(text, visible(text) === text && !text.includes('\\u') ? undefined : clean) as Report;
        const runs = parts.texts.get('runs');
        if (runs)
            report.tried = (JSON.parse(runs, clean) as NonNullable<Report['tried']>).filter((each) => typeof each?.allocator === 'string');
        const profile = new Profile(parts.columns, parts, report);
        const lines = (name: string) => visible(parts.texts.get(name) ?? '').split('\n').filter(Boolean);
        profile.leftOut = lines('left out');
        profile.selection = lines('selection');
        return profile;
    }

    /* Whether the overview has a value to show yet: one that is not 0 everywhere. */
    get begun(): boolean {
        return this.parts.columns.toCome === null || ['peak_bytes', 'bytes', 'allocations'].some((name) => !this.parts.columns.awaits(`context.${name}`) && this.column(name)?.some((value) => value > 0));
    }

    /* Without a second stream all was in the first one. */
    async readRest(base64: string | undefined): Promise<void> {
        if (base64)
            await decode(base64, this.parts);
        this.parts.columns.toCome = null;
    }

    /* This profile with other COLUMNS of numbers: those of a part of the run. */
    slice(columns: Map<string, Column>, unknown: Uint8Array): Profile {
        const kept = ['id', 'leaf', 'headline', 'type', 'pool', 'incomplete'];
        const of = <Result>(name: string, whole: (name: string) => Result, part: (name: string) => Result) => {
            const [, own] = /^context\.(.*)/.exec(name) ?? [];
            return own === undefined || kept.includes(own) ? whole(name) : part(own);
        };
        const get = (name: string) => of(name, (each) => this.columns.get(each), (each) => columns.get(each));
        const has = (name: string) => of(name, (each) => this.columns.has(each), (each) => columns.has(each));
        return Object.assign(Object.create(this) as Profile, { columns: { get, has }, whole: this.whole, unknown });
    }

    private need(name: string): Column {
        return this.columns.get(name) ?? nothing;
    }

    /* A column of contexts; null when it was not measured. */
    column(name: string): Column | null {
        return this.columns.get(`context.${name}`) ?? null;
    }

    /* Whether there is such a column, also where it is not read yet. */
    has(name: string): boolean {
        return this.columns.has(`context.${name}`);
    }

    table(name: string): Column | null {
        return this.columns.get(name) ?? null;
    }

    /* Counts of the whole run; those of sampled runs are estimates. */
    get counts(): Counts {
        return this.report.totals.sampled ?? this.report.totals;
    }

    get sampled(): boolean {
        return this.report.totals.sampled !== undefined;
    }

    /* In the order in which they were. */
    moments(): Moment[] {
        return asMoments(this.report.memory);
    }

    /* Those without a name, at up to 64 times. */
    overTime(): Moment[] {
        return asMoments(this.report.ledger_over_time);
    }

    private text(number: number | undefined): string {
        return this.parts.strings[number ?? 0] ?? '';
    }

    /* ---- names ---- */

    /* The number of a module, from 0 on; -1: none is known. */
    moduleNumber(location: number): number {
        return (this.need('location.module')[location] ?? 0) - 1;
    }

    modulePath(module: number): string {
        return module < 0 ? '' : this.text(this.need('module.path')[module]);
    }

    private moduleOf(location: number): string {
        return this.modulePath(this.moduleNumber(location));
    }

    /* Of a frame: the file, '' when not known, and the line, 0 when not known. */
    fileNumber(frame: number): number {
        return this.need('frame.file')[frame] ?? 0;
    }

    fileName(number: number): string {
        return this.text(number);
    }

    lineOf(frame: number): number {
        return this.need('frame.line')[frame] ?? 0;
    }

    private nameFrames(): Int32Array {
        const functions = this.need('frame.function');
        const addresses = this.need('location.address');
        const numbers = new Map<string, number>();
        const frames = new Int32Array(functions.length);
        for (let at = 0; at + 1 < this.firstFrame.length; at++)
            for (let i = this.firstFrame[at]!; i < this.firstFrame[at + 1]!; i++) {
                const name = this.text(functions[i]) || `${baseName(this.moduleOf(at)) || '?'}+0x${addresses[at]!.toString(16)}`;
                let number = numbers.get(name);
                if (number === undefined) {
                    number = this.names.length;
                    numbers.set(name, number);
                    this.names.push(name);
                }
                frames[i] = number;
            }
        return frames;
    }

    moduleKind(location: number): ModuleKind {
        const module = this.need('location.module')[location] ?? 0;
        return module ? this.need('module.kind')[module - 1] ?? ModuleKind.Program : ModuleKind.Generated;
    }

    /* The frames from a node to the root, leaf first. */
    stackOf(leaf: number): Frame[] {
        const frames: Frame[] = [];
        for (let node = leaf; node > 0; node = this.parent[node]!) {
            const location = this.location[node]!;
            for (let i = this.firstFrame[location]!; i < this.firstFrame[location + 1]!; i++)
                frames.push({
                    name: this.names[this.frameName[i]!]!,
                    wrapper: Boolean(this.table('frame.wrapper')?.[i]),
                    file: this.text(this.need('frame.file')[i]),
                    line: this.need('frame.line')[i] ?? 0,
                    module: this.moduleOf(location),
                    address: this.need('location.address')[location] ?? 0,
                });
        }
        return frames;
    }

    stack(context: number): Frame[] {
        return this.stackOf(this.leaf[context]!);
    }

    /* The name that stands for a context: that of its headline; a number in `names`, -1 without a stack. */
    headName(context: number): number {
        const known = this.headNames[context]!;
        if (known !== -2)
            return known;
        let skip = this.headline[context] ?? 0;
        let name = -1;
        for (let node = this.leaf[context]!; node > 0 && name < 0; node = this.parent[node]!) {
            const location = this.location[node]!;
            const frames = this.firstFrame[location + 1]! - this.firstFrame[location]!;
            if (skip < frames)
                name = this.frameName[this.firstFrame[location]! + skip]!;
            skip -= frames;
        }
        this.headNames[context] = name;
        return name;
    }

    title(context: number): string {
        const name = this.headName(context);
        return name < 0 ? '(stack not known)' : this.names[name]!;
    }

    /* "table.c:554", or the module's name, or ''. */
    place(context: number): string {
        const frame = this.stack(context)[this.headline[context] ?? 0];
        return frame ? place(frame) : '';
    }

    /* The functions above the headline, a function that calls itself once: at most MOST. */
    callers(context: number, most: number): string[] {
        const names: string[] = [];
        let last = this.title(context);
        for (const frame of this.stack(context).slice((this.headline[context] ?? 0) + 1)) {
            if (names.length >= most)
                break;
            if (startCode.test(frame.name))
                break;
            if (frame.name !== last)
                names.push(frame.name);
            last = frame.name;
        }
        return names;
    }

    type(context: number): string {
        return this.text(this.column('type')?.[context]);
    }

    /* By frame: whether its file's name has WORD (in small letters). */
    filesWith(word: string): Uint8Array {
        const known = this.parts.strings.map((text) => (text.toLowerCase().includes(word) ? 1 : 0));
        return Uint8Array.from(this.need('frame.file'), (file) => known[file] ?? 0);
    }

    /* The context of an id; -1 when there is none. */
    contextOf(id: number): number {
        if (!this.byId.size)
            this.need('context.id').forEach((value, index) => this.byId.set(value, index));
        return this.byId.get(id) ?? -1;
    }

    /* Who freed the blocks of a context, most first. */
    freeStacks(context: number): { leaf: number; count: number; bytes: number }[] {
        const contexts = this.need('free.context');
        const found = [];
        let low = 0;
        for (let high = contexts.length; low < high; ) {
            const middle = (low + high) >> 1;
            if (contexts[middle]! < context)
                low = middle + 1;
            else
                high = middle;
        }
        for (; contexts[low] === context; low++)
            found.push({
                leaf: this.need('free.leaf')[low] ?? 0,
                count: this.need('free.count')[low] ?? 0,
                bytes: this.need('free.bytes')[low] ?? 0,
            });
        return found;
    }
}

export function place(frame: Frame): string {
    if (frame.file)
        return baseName(frame.file) + (frame.line ? `:${frame.line}` : '');
    return baseName(frame.module);
}
