// @ts-check
// Asks the page's origin, once a tab, whether it has an API, for a build that names none.
import { kept, store } from './session.js';

/** @type {() => Promise<boolean>} */
export const isApiHere = async () => {
  const status = kept('chapterverse_api') ?? await fetch('/v1/health').then(reply => reply.json()).then(({ status }) => `${status}`).catch(() => '');
  store('chapterverse_api', `${status}`);
  if (status !== 'ok') console.info('Chapter & Verse: no `endpoint`, no API here');
  return status === 'ok';
};
