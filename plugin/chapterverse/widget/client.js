// @ts-check

/** @type {Post} */
export const post = (endpoint, path, body, signal) => fetch(endpoint.replace(/\/?$/, `/v1/${path}`), {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
  body: JSON.stringify(body),
  signal,
});

/** @type {Chat} */
export const chat = async ({ endpoint, timeout = 60 }, query, stop, on) => {
  const slow = AbortSignal.timeout(timeout * 1000);
  /** @type {Failure} */
  const failure = { kind: 'network' };
  try {
    const reply = await post(endpoint, 'chat', query, AbortSignal.any([stop, slow]));
    const { ok, status, headers } = reply;
    const type = `${headers.get('content-type')}`;
    failure.kind = ok ? (/json|event/.test(type) ? 'cut_off' : 'unexpected') : status;
    failure.wait = headers.get('retry-after');
    const answer = await (/event/.test(type) ? read(reply, on) : reply.json());
    failure.detail = answer.error?.message;
    if (ok) {
      failure.kind = answer.error ? 500 : 'unexpected';
      if (answer.response.trim()) return answer;
    }
  } catch {
    if (slow.aborted) failure.kind = 'slow';
    if (stop.aborted) failure.kind = 'stopped';
  }
  throw failure;
};

/** Reads a stream up to its answer, or its error. @type {(reply: Response, on: OnEvent) => Promise<any>} */
const read = async ({ body }, on) => {
  const reader = /** @type {ReadableStream} */ (body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', name = '', data = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw Error();
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, field, text] = /^(event|data): ?(.*)/s.exec(line) ?? [];
      if (field === 'event') name = text;
      else if (field) data += text;
      else if (!line && data) {
        const event = JSON.parse(data);
        if (name === 'final') return event;
        if (name === 'error') return { error: event };
        on(name, event);
        name = data = '';
      }
    }
  }
};
