// The plugin for Starlight: the integration for Astro, its colors, and on each page the file that it was written in.

import {nameSite} from 'chapterverse';
import chapterverse from './index.js';

export default function starlightChapterverse(options = {}) {
  return {
    name: 'astro-chapterverse',
    hooks: {
      'config:setup': ({addIntegration, addRouteMiddleware, config, updateConfig}) => {
        if (options.enabled === false) return;
        addIntegration(chapterverse(nameSite(options, config.title)));
        // First, so that the site's own style sheets win.
        updateConfig({customCss: ['astro-chapterverse/starlight.css', ...(config.customCss ?? [])]});
        addRouteMiddleware({entrypoint: 'astro-chapterverse/source'});
      },
    },
  };
}
