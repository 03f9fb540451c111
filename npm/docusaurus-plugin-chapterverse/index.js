// Puts the chat on every page of a Docusaurus site and indexes it after its build.

import {existsSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {Preview, nameSite, publish, sourceMeta} from 'chapterverse';

// Each locale is a build of its own with a plugin of its own.
const FIRST_BUILD = Symbol.for('chapterverse.docusaurus');

export default async function chapterverse(context, options) {
  const {id, ...own} = options;
  const chosen = nameSite(own, context.siteConfig.title);
  const name = 'docusaurus-plugin-chapterverse';
  if (chosen.enabled === false) return {name};
  // The command `start`; `swizzle` and others set nothing.
  const preview = process.env.NODE_ENV === 'development' ? await Preview.start(chosen, context.siteDir) : undefined;
  let port;
  let sources = new Map();
  let versions = [];
  const show = () => {
    if (!preview || !port || !sources.size) return;
    const pages = [...sources].map(([permalink, file]) => [file, permalink.slice(context.baseUrl.length)]);
    preview.show(`http://localhost:${port}${context.baseUrl}`, 'docusaurus', Object.fromEntries(pages));
  };
  return {
    name,

    async allContentLoaded({allContent}) {
      sources = sourcesOf(allContent);
      versions = versionsOf(allContent);
      show();
    },

    injectHtmlTags() {
      if (!preview) return {};
      return {headTags: [{tagName: 'script', attributes: {type: 'module', src: preview.launcher}}]};
    },

    configureWebpack() {
      if (!preview) return {};
      const onListening = (server) => {
        port = server.server.address().port;
        show();
      };
      return {devServer: {onListening}};
    },

    async postBuild({outDir, baseUrl, siteConfig, i18n}) {
      stateSources(outDir, baseUrl, sources);
      const first = (globalThis[FIRST_BUILD] ??= {outDir, path: baseUrl, versions: []});
      first.versions.push(...versions.map(([version, path]) => [version, path.slice(first.path.length)]));
      // The locales share one index, which can be written when the last one is there.
      if (i18n.currentLocale !== builtLocales(i18n).at(-1)) return;
      globalThis[FIRST_BUILD] = undefined;
      const address = new URL(first.path, siteConfig.url).href;
      const site = {cwd: context.siteDir, siteDir: first.outDir, baseUrl: address, setting: 'url'};
      await publish(chosen, {...site, versions: first.versions});
    },
  };
}

/** Returns the file of each page by its permalink; every content plugin states both. */
function sourcesOf(content) {
  const sources = new Map();
  const seen = new Set();
  const waiting = [content];
  while (waiting.length) {
    const value = waiting.pop();
    if (value === null || typeof value !== 'object' || seen.has(value)) continue;
    seen.add(value);
    const {permalink, source} = value;
    if (typeof permalink === 'string' && typeof source === 'string' && source.startsWith('@site/')) {
      sources.set(permalink, source.slice('@site/'.length));
    }
    waiting.push(...Object.values(value));
  }
  return sources;
}

/**
 * Returns the versions of the docs and where they are, if they have any. The latest has every page that is in no
 * other, so it is at the site's own address.
 */
function versionsOf(content) {
  const instances = Object.values(content['docusaurus-plugin-content-docs'] ?? {});
  return instances.flatMap(({loadedVersions = []}) => {
    if (loadedVersions.length < 2 && loadedVersions[0]?.versionName === 'current') return [];
    return loadedVersions.map(({versionName, path, isLast}) => [versionName, isLast ? '' : path]);
  });
}

/** Writes into each built page which file it was written in, so that citations name it. */
function stateSources(outDir, baseUrl, sources) {
  for (const [permalink, source] of sources) {
    const path = decodeURI(permalink.slice(baseUrl.length)).replace(/\/$/, '');
    const page = [join(path, 'index.html'), `${path}.html`].map((file) => join(outDir, file)).find(existsSync);
    if (!page) continue;
    const html = readFileSync(page, 'utf8');
    writeFileSync(page, html.replace(/<head[^>]*>/, (head) => head + sourceMeta(source)));
  }
}

/** Returns the locales of this build in their order: the default one first, or those that `--locale` names. */
function builtLocales({locales, defaultLocale}) {
  const args = process.argv;
  const named = args.flatMap((arg, i) => {
    if (arg.startsWith('--locale=')) return [arg.slice('--locale='.length)];
    return arg === '--locale' || arg === '-l' ? [args[i + 1]] : [];
  });
  const built = named.length ? named : locales;
  return built.includes(defaultLocale) ? [defaultLocale, ...built.filter((l) => l !== defaultLocale)] : built;
}
