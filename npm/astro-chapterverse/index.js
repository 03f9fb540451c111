// Puts the chat on every page of an Astro site and indexes it after its build.

import {existsSync, readFileSync, readdirSync} from 'node:fs';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {Preview, publish} from 'chapterverse';

// Folders of Markdown whose files are pages.
const PAGES = ['src/pages', 'src/content/docs'];
const MARKDOWN = /\.mdx?$/;

export default function chapterverse(options = {}) {
  const name = 'astro-chapterverse';
  if (options.enabled === false) return {name, hooks: {}};
  let config;
  let root;
  let preview;
  let address;
  const show = () => {
    if (!preview || !address) return;
    const origin = `http://localhost:${address.port}`;
    preview.show(new URL(slashed(config.base), origin).href, 'github', pagesOf(root, config.trailingSlash));
  };
  return {
    name,
    hooks: {
      'astro:config:setup': async ({command, config: {root: folder}, injectScript}) => {
        root = fileURLToPath(folder);
        if (command !== 'dev') return;
        preview = await Preview.start(options, root);
        const src = JSON.stringify(preview?.launcher);
        const script = `Object.assign(document.createElement('script'), {type: 'module', src: ${src}})`;
        if (preview) injectScript('head-inline', `document.head.append(${script});`);
      },
      'astro:config:done': (done) => {
        config = done.config;
      },
      'astro:server:setup': ({server}) => {
        server.watcher.on('all', (_, file) => MARKDOWN.test(file) && show());
      },
      'astro:server:start': (started) => {
        address = started.address;
        show();
      },
      'astro:build:done': async ({dir}) => {
        const baseUrl = config.site && new URL(slashed(config.base), config.site).href;
        await publish(options, {cwd: root, siteDir: fileURLToPath(dir), baseUrl, setting: 'site'});
      },
    },
  };
}

const slashed = (base) => (base.endsWith('/') ? base : `${base}/`);

/** Returns the address of each page by its file, as Astro and Starlight make it of the path. */
function pagesOf(root, trailingSlash) {
  const pages = {};
  for (const folder of PAGES.filter((folder) => existsSync(join(root, folder)))) {
    for (const file of readdirSync(join(root, folder), {recursive: true}).map((path) => path.replaceAll('\\', '/'))) {
      if (!MARKDOWN.test(file) || /(^|\/)_/.test(file)) continue;
      const stated = /^---\n(?:.*\n)*?slug:[ \t]*['"]?([^'"\n]*)/.exec(readFileSync(join(root, folder, file), 'utf8'));
      const parts = file.replace(MARKDOWN, '').split('/').map(slug);
      const path = (stated?.[1].trim() || parts.join('/')).replace(/(^|\/)index$/, '');
      pages[`${folder}/${file}`] = path && trailingSlash !== 'never' ? `${path}/` : path;
    }
  }
  return pages;
}

// As github-slugger does, which both use.
const slug = (part) => part.toLowerCase().replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-');
