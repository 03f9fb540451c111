import type {StarlightPlugin} from '@astrojs/starlight/types';
import type {Options} from 'chapterverse';

export default function starlightChapterverse(options?: Options): StarlightPlugin;
