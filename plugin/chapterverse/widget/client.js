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
    if (!reply.ok) {
      const detail = (await reply.json().catch(() => null))?.error?.message;
      throw { kind: reply.status, detail: /422|503/.test(`${reply.status}`) && detail, wait: reply.headers.get('retry-after') };
    }
    const type = reply.headers.get('content-type') ?? '';
    const answer = /json/.test(type) ? await reply.json() : /event-stream/.test(type) && await read(reply, on);
    if (answer?.response && typeof answer.response === 'string') return answer;
    throw { kind: 'unexpected' };
  } catch (error) {
    if (stop.aborted) kind = 'stopped';
    else if (slow.aborted) kind = 'slow';
    else if (!(error instanceof Error)) throw error;
    throw { kind };
  }
};

/** @type {(reply: Response, on: OnEvent) => Promise<Answer>} */
const read = async ({ body }, on) => {
  const reader = /** @type {ReadableStream} */ (body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', name = '', data = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw { kind: 'cut_off' };
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, field, text] = /^(event|data): ?(.*)/.exec(line) ?? [];
      if (field === 'event') name = text;
      else if (field) data += text;
      else if (!line && data) {
        const event = JSON.parse(data);
        if (name === 'final') return event;
        if (name === 'error') throw { kind: 500, detail: event.message };
        on(name, event);
        name = data = '';
      }
    }
  }
};
