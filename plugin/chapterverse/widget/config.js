// @ts-check
/** What the site decides: the plugin writes its own; as it is here it is loaded from the API. @type {Config} */
export default { endpoint: new URL('..', import.meta.url).href, title: '', titles: {} };
