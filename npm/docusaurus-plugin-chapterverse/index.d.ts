import type {LoadContext, Plugin} from '@docusaurus/types';
import type {Options} from 'chapterverse';

export type {Options};
export default function chapterverse(context: LoadContext, options: Options): Promise<Plugin>;
