// @ts-check

/** @type {Chat} */
export const chat = async ({ endpoint, timeout = 60 }, query, stop, on) => {
  const slow = AbortSignal.timeout(timeout * 1000);
  let kind = 'network';
  try {
    const reply = await fetch(`${endpoint.replace(/\/$/, '')}/v1/chat`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: JSON.stringify(query),
      signal: AbortSignal.any([stop, slow]),
    });
    kind = 'cut_off';
    if (!reply.ok) throw await refusal(reply);
    const type = reply.headers.get('content-type') ?? '';
    const answer = /json/.test(type) ? await reply.json() : /event-stream/.test(type) && await read(reply, on);
    if (answer?.response && typeof answer.response === 'string') return answer;
    throw { kind: 'unexpected' };
  } catch (error) {
    throw stop.aborted ? { kind: 'stopped' } : slow.aborted ? { kind: 'timeout' } : error instanceof Error ? { kind } : error;
  }
};

/** @type {(reply: Response) => Promise<object>} */
const refusal = async reply => {
  const { status } = reply;
  /** @type {Record<number, string>} */
  const kinds = { 400: 'invalid', 403: 'forbidden', 413: 'too_large', 422: 'invalid', 429: 'busy' };
  const kind = kinds[status] ?? (status < 500 ? 'unexpected' : 'server');
  const detail = kind === 'invalid' && (await reply.json().catch(() => null))?.error?.message;
  return { kind, detail, wait: Number(reply.headers.get('retry-after')) };
};

/** @type {(reply: Response, on: Heard) => Promise<Answer>} */
const read = async ({ body }, on) => {
  const reader = /** @type {ReadableStream} */ (body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', name = '', data = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw { kind: 'cut_off' };
    // A "\r" that ends a chunk may be half of a "\r\n": it waits for what follows.
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, field, text] = /^(event|data): ?(.*)/.exec(line) ?? [];
      if (field === 'event') name = text;
      else if (field) data += text;
      else if (!line && data) {
        const event = JSON.parse(data);
        if (name === 'final') return event;
        if (name === 'error') throw { kind: 'server', detail: event.message };
        on(name, event);
        name = data = '';
      }
    }
  }
};
