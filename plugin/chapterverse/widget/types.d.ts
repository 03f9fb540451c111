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
  /** Seconds after which a question without a whole answer has failed; 60 when absent. */
  timeout?: number;
  /** Any of the interface's own strings, in other words. */
  strings?: Partial<Strings & { offer: string; unloaded: string }>;
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
  selection?: string;
}

/** Body of `POST /v1/chat`. */
interface ChatQuery {
  query?: string;
  selected_text?: string;
  conversation_history: Pick<Message, 'role' | 'content' | 'timestamp' | 'signature'>[];
  thread_id: string;
  page_url: string;
}

/** The latest answered questions, within what the API takes: 10 messages of 4,000 characters, 16,000 in all. */
type Recent = (messages: Message[]) => ChatQuery['conversation_history'];

/**
 * Asks, and resolves to the verified answer; meanwhile `on` hears the events of a stream: `meta`, with the `sources`
 * that were found, and `delta`, with a piece of the draft as its `text`. Rejects with a `Failure`.
 */
type Chat = (config: Config, query: ChatQuery, stop: AbortSignal, on: OnEvent) => Promise<Answer>;
type OnEvent = (name: string, data: any) => void;

/** Why there is no answer. */
interface Failure {
  /** A key of `Strings`, or an HTTP status, which may have none of its own. */
  kind: any;
  /** The API's own sentence. */
  detail?: string;
  /** Seconds to wait, from `Retry-After`. */
  wait?: string | null;
}

/** One question's place in the conversation. `show` and `fail` return the words to announce. */
interface Turn {
  node: HTMLElement;
  busy(): void;
  draft(markdown: string): void;
  show(answer: Answer): string;
  fail(failure: Failure): string;
}
type CreateTurn = (strings: Strings, question: Question, retry: () => void) => Turn;

/** Opens the panel, about `selection` if there is one; without `focus` the reader stays where they are. */
type Open = (selection: string, focus: boolean) => void;
interface Panel {
  open: Open;
}
type CreatePanel = (root: ShadowRoot, launcher: HTMLElement, config: Config) => Panel;

/** Offers to ask about what is selected on the page. */
type Offer = (root: ShadowRoot, config: Config, open: Open) => void;

type Content = Node | string | (Node | string)[];

/**
 * Makes an element. Texts lose their control and bidi characters, which hide or reorder their neighbors; none is ever
 * parsed as HTML.
 */
type El = <K extends keyof HTMLElementTagNameMap>(
  name: K, properties?: Partial<HTMLElementTagNameMap[K]>, ...children: Content[]
) => HTMLElementTagNameMap[K];

/**
 * A link; a `span` with the same content unless the address is http(s), without credentials, white space or hidden
 * characters. One that leaves the site opens a tab of its own.
 */
type Link = (address: string | null | undefined, className: string, ...children: Content[]) => HTMLElement;

/**
 * Sends a plain click on a same-site link through a link of the page itself: a theme's instant navigation does not see
 * links inside a shadow root, and would load the whole page. `before` runs just before the page moves.
 */
type Follow = (event: MouseEvent, before: () => void) => void;

/** Makes the marker for the end of segment number `index`. */
type Cite = (index: number) => Node | string;

/** Markdown, cut into segments, as DOM nodes. */
type Render = (segments: Segment[], cite: Cite) => DocumentFragment;

/** Lines as blocks; `depth` counts the quotes and list items around them. */
type Blocks = (lines: string[], cite: Cite, depth: number) => DocumentFragment;

/** The content of a paragraph; inside a link (`linked`) there is no other. */
type Inline = (text: string, cite: Cite, linked?: boolean) => (Node | string)[];
