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

/* A ratio of times, and where it lies 19 times out of 20. */
export interface Speedup {
    speedup: number;
    low: number;
    high: number;
}

export interface Report {
    /* Of heapwise allocators --json, where the page was made with it. */
    tried?: { allocator: string; version?: Maybe<string>; present?: boolean; chosen?: boolean; time_s?: Maybe<number>; peak_rss_bytes?: Maybe<number>; page_faults?: Maybe<number>; predicted?: Maybe<Speedup>; measured?: Maybe<Speedup>; note?: Maybe<string> }[];
    process: {
        file?: Maybe<string>;
        pid?: Maybe<number>;
        command?: Maybe<string[]>;
        executable?: Maybe<string>;
        started_ns?: Maybe<number>;
        duration_ns?: Maybe<number>;
        exit?: Maybe<{ code?: number; signal?: number; exec?: boolean }>;
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
    timeline?: Point[];
    memory?: Record<string, number | string>[];
    allocator?: Maybe<Allocator>;
    not_observed?: string[];
}
