/* view.ts - what the views are to the shell. */
import type { Comparison } from './comparison';
import type { Profile } from './model';

export interface Page {
    profile: Profile;
    baseline: Profile | null;
    comparison: Comparison | null; // with a baseline
}

export interface View {
    key: string;
    title: string;
    /* Fills ROOT. Returns what has to be undone when another view takes the place. */
    show: (page: Page, root: HTMLElement) => (() => void) | void;
    /* Why there is nothing to see: a sentence that says what would bring it; null when there is. */
    missing: (page: Page) => string | null;
}
