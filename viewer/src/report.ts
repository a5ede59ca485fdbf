/* report.ts - the object of heapwise report --json, as far as the page reads it. docs/json.md explains the keys.
 * Everything may be missing: what was not measured is null or absent. */

export type Maybe<T> = T | null | undefined;

export interface Counts {
    allocations?: Maybe<number>;
    frees?: Maybe<number>;
    reallocations?: Maybe<number>;
    bytes_allocated?: Maybe<number>;
    peak_bytes?: Maybe<number>;
    live_allocations?: Maybe<number>;
    live_bytes?: Maybe<number>;
    temporary_allocations?: Maybe<number>;
    accesses?: Maybe<number | { total?: Maybe<number>; reads?: Maybe<number>; writes?: Maybe<number> }>;
}

export interface Point extends Counts {
    time_ns: number;
    rss_bytes?: Maybe<number>;
    sampled?: Counts;
}

export interface ThreadCounts {
    allocations?: Maybe<number>;
    bytes?: Maybe<number>;
    peak_bytes?: Maybe<number>;
    live_bytes?: Maybe<number>;
    freed_by_others?: Maybe<number>;
    freed_of_others?: Maybe<number>;
    places?: { context: number; bytes: number; allocations: number }[];
}

export interface Thread extends ThreadCounts {
    name?: Maybe<string>;
    kind?: Maybe<string>;
    start?: Maybe<{ function?: Maybe<string>; file?: Maybe<string>; line?: Maybe<number> }>;
    threads?: Maybe<number>;
    names_differ?: Maybe<boolean>;
    started_by?: Maybe<{ thread?: Maybe<number>; context?: Maybe<number> }>; // index in threads; of thread_starts
    sampled?: ThreadCounts;
}

export interface ThreadStart {
    context: number;
    stack: { function?: Maybe<string>; file?: Maybe<string>; line?: Maybe<number> }[];
    headline: number;
}

export interface RegionCounts {
    allocations?: Maybe<number>;
    bytes?: Maybe<number>;
    live_bytes?: Maybe<number>;
    peak_bytes?: Maybe<number>;
}

/* What the program measured itself, by name: sums over those that ended. */
export interface Region extends RegionCounts {
    name: string;
    scope: string;
    begun: number;
    ended: number;
    total_ns?: Maybe<number>;
    longest_ns?: Maybe<number>;
    sampled?: RegionCounts;
}

export interface Mark {
    name: string;
    time_ns: number;
    live_bytes?: Maybe<number>;
    sampled?: { live_bytes?: Maybe<number> };
}

export interface Finding {
    kind: string;
    rank: number;
    title: string;
    why?: Maybe<string>;
    what_to_do?: Maybe<string>;
    expected_gain?: Maybe<string>;
    struct?: Maybe<string>;
    contexts?: number[];
}

export interface Field {
    name: Maybe<string>;
    offset: number;
    size: number;
    bit_offset?: number;
    bit_size?: number;
    type?: Maybe<string>;
    reads?: number;
    writes?: number;
    possible_reads?: number;
    possible_writes?: number;
    used_by_uncounted_code?: boolean;
    part?: string;
}

export interface Struct {
    struct: Maybe<string>;
    size: number;
    file?: Maybe<string>;
    line?: Maybe<number>;
    reads?: number;
    writes?: number;
    padding?: number;
    uses?: number;
    lines_per_use?: Maybe<number>;
    lines_needed?: Maybe<number>;
    lines_brought_in?: Maybe<number>;
    fragmentation?: Maybe<number>;
    objects?: Maybe<{ allocated: number; at_once: number; bytes_at_once: number; placement: Maybe<string>; starts_assumed?: boolean }>;
    contexts?: number[];
    fields: Field[];
    affinity?: { a: Maybe<string>; b: Maybe<string>; together?: number; weight?: number }[];
    suggestion?: Maybe<{
        kind?: string;
        layout: Field[];
        lines_before?: number;
        lines_after?: number;
        size_before?: number;
        size_after?: number;
        cold_size?: number;
        definition?: Maybe<string>;
    }>;
    order_stays_because?: Maybe<string>;
}

export interface WordHistogram {
    word_bytes: number;
    reads: number[];
    writes: number[];
}

export interface Global {
    symbol: Maybe<string>;
    symbols?: Maybe<string>[];
    module?: Maybe<string>;
    size: number;
    accesses?: Maybe<number>;
    reads?: Maybe<number>;
    writes?: Maybe<number>;
    histogram?: Maybe<Maybe<number>[]>;
    word_histogram?: Maybe<WordHistogram>;
}

export interface Cycles {
    mean?: Maybe<number>;
    p50?: Maybe<number>;
    p90?: Maybe<number>;
    p99?: Maybe<number>;
    max?: Maybe<number>;
    histogram?: Maybe<unknown>;
}

export interface Operation {
    phase: string;
    size: string;
    kind: string;
    count: number;
    cycles?: Maybe<Cycles>;
}

/* Parts that are not named here are shown as they are. */
export interface Allocator {
    name?: Maybe<string>;
    style?: Maybe<string>;
    operations?: Operation[];
    memory_at_peak?: Maybe<Record<string, unknown>>;
    locks?: unknown;
    syscalls?: unknown;
    false_sharing?: Maybe<Record<string, unknown>>;
    prediction?: { allocator: string; version?: Maybe<string>; speedup?: Maybe<number>; low?: Maybe<number>; high?: Maybe<number>; measured?: Maybe<number>; problem?: Maybe<string> }[];
    verdict?: unknown;
    [key: string]: unknown;
}

export interface StackFrame {
    function?: Maybe<string>;
    file?: Maybe<string>;
    line?: Maybe<number>;
    module?: Maybe<string>;
    offset?: Maybe<number>;
}

/* A part of RSS at one moment, by who mapped it. */
export interface LedgerRow {
    stack: StackFrame[];
    headline?: number;
    moment: string;
    kind: string;
    title: string;
    mappings: number;
    bytes: number;
    resident_bytes: number;
    private_bytes: number;
    pss_bytes: number;
    swap_bytes: number;
}

/* What a call stack has mapped over the run, of address space. */
export interface Mapping {
    stack: StackFrame[];
    headline?: number;
    calls: number;
    bytes: number;
    mapped_bytes: number;
    peak_bytes: number;
}

/* A ratio of times, and where it lies 19 times out of 20. */
export interface Speedup {
    speedup: number;
    low: number;
    high: number;
}

/* What keeps pages resident: of one place, and of all. */
export interface Pin {
    context: number;
    pages: number;
    bytes_pinned: number;
    occupancy_percent: number;
    blocks: number;
    own_bytes: number;
    sole_pages: number;
}

export interface HeapPages {
    blocks: number;
    live_pages: number;
    requested_bytes: number;
    rounding_bytes?: Maybe<number>;
    header_bytes?: Maybe<number>;
    absent_bytes: number;
    free_bytes: number;
    kept_bytes: number;
    resident_bytes: number;
    occupancy?: { unit: string; percent_at_most: number; pieces: number; resident_bytes: number; live_bytes: number }[];
}

export interface Report {
    regions?: Region[];
    marks?: Mark[];
    /* Of heapwise allocators --json, where the page was made with it. */
    tried?: { allocator: string; version?: Maybe<string>; present?: boolean; chosen?: boolean; time_s?: Maybe<number>; peak_rss_bytes?: Maybe<number>; page_faults?: Maybe<number>; predicted?: Maybe<Speedup>; measured?: Maybe<Speedup>; note?: Maybe<string> }[];
    process: {
        file?: Maybe<string>;
        pid?: Maybe<number>;
        command?: Maybe<string[]>;
        executable?: Maybe<string>;
        started_ns?: Maybe<number>;
        duration_ns?: Maybe<number>;
        exit?: Maybe<{ code?: number; signal?: number; exec?: boolean; detached?: boolean }>;
        state?: Maybe<string>;
        mode?: Maybe<string>;
        allocator?: Maybe<string>;
        options?: Maybe<string>;
        sample_bytes?: Maybe<number>;
        cpus?: Maybe<number>;
        runs?: number;
        access?: Maybe<{ granule?: number }>;
    };
    totals: Counts & {
        peak_time_ns?: Maybe<number>;
        threads?: Maybe<number>;
        contexts?: Maybe<number>;
        peak_rss_bytes?: Maybe<number>;
        sampled?: Counts;
    };
    globals?: Maybe<Global[]>;
    fields?: Struct[];
    findings?: Finding[];
    threads?: Maybe<Thread[]>;
    thread_starts?: Maybe<ThreadStart[]>;
    timeline?: Point[];
    memory?: Record<string, number | string>[];
    memory_parts?: { part: string; title: string }[];
    ledger_over_time?: Record<string, number | string>[];
    ledger?: LedgerRow[];
    mappings?: Mapping[];
    allocator?: Maybe<Allocator>;
    not_observed?: string[];
    leaks?: { class: string; blocks: number; bytes: number }[];
    leak_search?: Maybe<object>;
    pinned?: Maybe<Pin[]>;
    heap_pages?: Maybe<HeapPages>;
}
