// @ts-check
/** What the site decides: the plugin writes its own. @type {Config} */
export default { endpoint: '', title: 'Ask the docs' };
