// Puts the chat on every page of a VitePress site and indexes it after its build: a plugin of Vite.

import {join, relative} from 'node:path';
import {Preview, nameSite, publish} from 'chapterverse';

// Vite runs for the browser and for the server, with one configuration of VitePress.
const hooked = new WeakSet();

export default function chapterverse(options = {}) {
  let site;
  let preview;
  return {
    name: 'vitepress-plugin-chapterverse',

    configResolved(config) {
      site = options.enabled === false ? undefined : config.vitepress;
      if (!site || config.command !== 'build' || hooked.has(site)) return;
      hooked.add(site);
      const {transformHead, buildEnd} = site;
      site.transformHead = async (context) => {
        const own = (await transformHead?.(context)) ?? [];
        const file = context.pageData.filePath;
        return file ? [...own, ['meta', {name: 'chapterverse:source', content: file}]] : own;
      };
      site.buildEnd = async (built) => {
        await buildEnd?.(built);
        const {root, outDir, sitemap} = built;
        const baseUrl = sitemap?.hostname && new URL(built.site.base, sitemap.hostname).href;
        await publish(nameSite(options, built.site.title), {cwd: root, siteDir: outDir, baseUrl, setting: 'sitemap.hostname'});
      };
    },

    async configureServer(server) {
      if (!site) return;
      preview = await Preview.start(nameSite(options, site.site.title), site.root);
      if (!preview) return;
      const show = () => {
        const address = server.httpServer?.address();
        if (address) preview.show(`http://localhost:${address.port}${site.site.base}`, 'vitepress', pagesOf(site));
      };
      server.httpServer?.once('listening', show);
      server.watcher.on('all', (_, file) => file.endsWith('.md') && show());
    },

    transformIndexHtml() {
      if (!preview) return [];
      return [{tag: 'script', attrs: {type: 'module', src: preview.launcher}, injectTo: 'head'}];
    },
  };
}

/** Returns the address of each page by its file, as VitePress has decided it. */
function pagesOf({root, srcDir, pages, rewrites, cleanUrls}) {
  const addressOf = (page) =>
    (rewrites.map[page] ?? page).replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, cleanUrls ? '' : '.html');
  const own = pages.map((page) => [relative(root, join(srcDir, page)).replaceAll('\\', '/'), addressOf(page)]);
  return Object.fromEntries(own);
}
