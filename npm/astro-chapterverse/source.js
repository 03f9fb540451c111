// Middleware of Starlight, run for each page.

export const onRequest = ({locals}) => {
  const {entry, head} = locals.starlightRoute;
  if (entry?.filePath) head.push({tag: 'meta', attrs: {name: 'chapterverse:source', content: entry.filePath}, content: ''});
};
