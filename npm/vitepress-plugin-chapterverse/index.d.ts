import type {Options} from 'chapterverse';

export type {Options};
// VitePress brings a Vite of its own, so its type of a plugin can't be named here.
export default function chapterverse(options?: Options): any;
