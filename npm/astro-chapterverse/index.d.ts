import type {AstroIntegration} from 'astro';
import type {Options} from 'chapterverse';

export type {Options};
export default function chapterverse(options?: Options): AstroIntegration;
