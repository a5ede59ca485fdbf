/* view.ts - what the views are to the shell. */
import type { Comparison } from './comparison';
import type { Profile } from './model';

export interface Page {
    profile: Profile;
    baseline: Profile | null;
    comparison: Comparison | null; // with a baseline
    /* Not all of the page is read yet: only the overview of a whole run can be shown until then. */
    rest: Promise<void> | null;
}

export interface View {
    key: string;
    title: string;
    /* Fills ROOT. Returns what has to be undone when another view takes the place. */
    show: (page: Page, root: HTMLElement) => (() => void) | void;
    /* It can show a part of the run: it gets the profile of that (time.ts). Others always show the whole run. */
    timed?: boolean;
    /* Why there is nothing to see: a sentence that says what would bring it; null when there is. */
    missing: (page: Page) => string | null;
}
