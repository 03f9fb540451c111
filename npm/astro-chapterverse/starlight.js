// The plugin for Starlight: the integration for Astro, and on each page the file that it was written in.

import chapterverse from './index.js';

export default function starlightChapterverse(options = {}) {
  return {
    name: 'astro-chapterverse',
    hooks: {
      'config:setup': ({addIntegration, addRouteMiddleware}) => {
        if (options.enabled === false) return;
        addIntegration(chapterverse(options));
        addRouteMiddleware({entrypoint: 'astro-chapterverse/source'});
      },
    },
  };
}
