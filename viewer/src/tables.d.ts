/* tables.d.ts - what vite.config.mjs makes of src/report/view/measures.def and src/profile/numbers.def. */
declare module '*/measures.def' {
    export const rows: { key: string; title: string; short: string; hint: string; unit: 'BYTES' | 'COUNT' | 'NS' | 'RATIO' | 'SHARE'; sum: string; by: string }[];
    export const old: Map<string, string>;
}
declare module '*/numbers.def' {
    export const rows: { column: string; unit: string; of: string; adds: 'SUM' | 'SIGNED' | 'LEAST' | 'MOST' | 'FIRST' | 'THREADS'; sentence: string }[];
}
