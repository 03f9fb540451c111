/**
 * The values and functions that the widget's modules share, as global types. Browsers never load this file, so the
 * long explanations stand here. On the wire, `lambda/chapterverse_api/contract.py` has the last word.
 */

type Strings = typeof import('./strings.js').STRINGS;
type Icon = keyof typeof import('./dom.js').ICONS;

/** What a site decides: the default export of `config.js`. */
interface Config {
  /** Base of the API, without `/v1`. Empty: this page's own origin. */
  endpoint: string;
  /** Words on the launcher and at the head of the panel. */
  title: string;
  /** First line of an empty conversation. */
  greeting?: string;
  /** Shown in the empty field. */
  placeholder?: string;
  /** Questions offered in an empty conversation. */
  starters?: string[];
  /** Seconds without a byte from the API after which a question counts as failed; 60 when absent. */
  timeout?: number;
  /** Any of the interface's own strings, in other words. */
  strings?: Partial<Strings>;
}

/** A section of the docs. */
interface Section {
  chapter: string;
  section: string | null;
  url: string | null;
}

/** A section that an answer rests on, by the id that segments cite. */
interface Source extends Section {
  id: string;
  snippet: string;
}

/** A stretch of an answer with the ids of the sources that carry it. */
interface Segment {
  text: string;
  citations: string[];
}

/** What a session keeps of an answer (DESIGN 4.4). */
interface Kept {
  mode?: 'rag' | 'selected_text';
  source_chunks?: Source[];
  segments?: Segment[];
  status?: 'answered' | 'partial' | 'not_in_docs' | 'degraded';
  turn_id?: string;
  signature?: object;
}

/** The part of a `ChatResponse` that the widget reads. */
interface Answer extends Kept {
  response: string;
  nearest?: Section[];
}

interface Message extends Kept {
  role: 'user' | 'assistant';
  content: string;
  timestamp: string;
}

/** `sessionStorage["chatbot_session"]`. */
interface Session {
  session_id: string;
  messages: Message[];
  created_at: string;
}

/** What a reader wants to know: a question, a selection, or both. */
interface Question {
  text: string;
  selection: string;
}

/** Body of `POST /v1/chat`. */
interface ChatQuery {
  query?: string;
  selected_text?: string;
  conversation_history: Pick<Message, 'role' | 'content' | 'timestamp' | 'signature'>[];
  thread_id: string;
  page_url: string;
}

/** Why there is no answer: `kind` names the string that tells the reader, `detail` is the API's own sentence. */
interface Failure {
  kind: keyof Strings;
  detail?: string;
  /** Seconds to wait, from `Retry-After`. */
  wait?: number;
}

/** What comes back: how many sources were found, pieces of a draft, and at last the verified answer. */
interface ChatEvent {
  sources?: number;
  delta?: string;
  answer?: Answer;
}

/**
 * Asks, and yields what comes back; the last event holds the answer. Throws a `Failure`: the one that `control` was
 * aborted with, or what went wrong. `seconds` of silence are a failure too.
 */
type Chat = (endpoint: string, query: ChatQuery, control: AbortController, seconds: number) => AsyncGenerator<ChatEvent>;

/** Splits a byte stream into [event, data] by the rules of server-sent events; `heard` runs at each chunk. */
type ReadEvents<T> = (body: ReadableStream<Uint8Array<ArrayBuffer>>, heard: () => void) => AsyncGenerator<T>;

/**
 * Makes an element. An attribute whose value is a function is a listener for the event of that name. Texts lose their
 * control and bidi characters, which hide or reorder their neighbors; none is ever parsed as HTML.
 */
type El = <K extends keyof HTMLElementTagNameMap>(
  name: K, attributes?: Record<string, string | ((event: any) => void)>, ...children: (Node | string)[]
) => HTMLElementTagNameMap[K];

/** A link, or a `span` with the same content when `safeUrl` refuses the address. Off-site ones open a tab of their own. */
type Link = (address: unknown, name: string, ...children: (Node | string)[]) => HTMLElement;

/**
 * Sends a plain click on a same-site link through a link of the page itself: a theme's instant navigation does not see
 * links inside a shadow root, and would load the whole page. `before` runs just before the page moves.
 */
type Follow = (event: MouseEvent, before: () => void) => void;

/** Makes the marker for the end of segment number `index`. */
type Cite = (index: number) => Node;

/** Markdown, cut into segments, as DOM nodes; linear in its length for any input. */
type Render = (segments: Segment[], cite: Cite) => DocumentFragment;

/** A piece of inline content: how deep its elements nest, and, while it may still open emphasis, its sign and size. */
interface Piece {
  node: Node;
  depth: number;
  sign?: string;
  size?: number;
}
