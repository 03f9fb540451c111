// @ts-check

/** @type {Post} */
export const post = async (endpoint, path, body, signal) => {
  const request = {
    method: 'POST',
    signal,
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' }
  };
  const reply = await fetch((endpoint ?? '').replace(/\/?$/, `/v1/${path}`), request);
  return reply.headers.get('x-work') ? (await import('./work.js')).post(reply, request) : reply;
};

/** @type {Chat} */
export const chat = async ({ endpoint, timeout = 60 }, query, stop, on) => {
  /** @type {Failure} */
  const failure = { kind: 'network' };
  const slow = AbortSignal.timeout(timeout * 1000);
  try {
    const reply = await post(endpoint, 'chat', query, AbortSignal.any([stop, slow]));
    const type = reply.headers.get('content-type');
    failure.wait = reply.headers.get('retry-after');
    // A negative status is that of a page in place of an answer.
    failure.kind = /json|event/.test(type) ? (reply.ok ? 'cut_off' : reply.status) : -reply.status;
    const answer = await (/event/.test(type) ? read(reply, on) : reply.json());
    failure.detail = answer.error?.message;
    if (reply.ok) {
      failure.kind = answer.error ? 500 : 'unexpected';
      if (answer.response.trim()) return answer;
    }
  } catch {
    if (slow.aborted) failure.kind = 'slow';
    if (stop.aborted) failure.kind = stop.reason === 'offline' ? stop.reason : 'stopped';
  }
  throw failure;
};

/** Reads a stream until its answer or error. @type {(reply: any, on: OnEvent) => Promise<any>} */
const read = async ({ body }, on) => {
  const reader = body.getReader(), decoder = new TextDecoder;
  let rest = '', name = '', data = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw 0;
    /** @type {any[]} */
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      const [, field, text] = line.match(/^(event|data): ?(.*)/s) ?? [];
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
