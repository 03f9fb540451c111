// @ts-check
/** The site's options. The plugin generates its own; this default is served by the API. @type {Config} */
export default { endpoint: new URL('..', import.meta.url).href, title: '', titles: {} };
