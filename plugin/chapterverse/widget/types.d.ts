/**
 * The values and functions that the widget's modules share, as global types. Browsers never load this file, so it has
 * the long explanations. `lambda/chapterverse_api/contract.py` defines the wire format.
 */

type Words = typeof import('./lang/en.js').default;
type Later = typeof import('./lang/more/en.js').default;
type Icon = keyof typeof import('./render.js').ICONS;

/** A site's options: the default export of `config.js`, overridden by the script tag's `data-` attributes. */
interface Config {
  /** Base of the API, without `/v1`. Empty: this page's own origin. Null: the build had none; the launcher looks there. */
  endpoint: string | null;
  /** Language of the interface, which the launcher sets by the page. */
  language?: string;
  /** Label of the launcher and title of the panel; the launcher sets a default. */
  title: string;
  /** Titles by language, used without a `title`. */
  titles?: Record<string, string>;
  /** Docs version of this page. */
  version?: string;
  /** Name of the site, which its generator knows. */
  site?: string;
  /** First line of an empty conversation. `{site}` is the name of the site. */
  greeting?: string;
  /** Placeholder of the empty field. */
  placeholder?: string;
  /** Questions offered in an empty conversation; a single text is JSON, or split at "|". */
  starters?: string[] | string;
  /** Module with the questions for a page without any, relative to the panel's. */
  starters_file?: string;
  /** The panel's layout on wide screens; "floating" by default. */
  layout?: 'floating' | 'side';
  /** Whether Ctrl+I or Cmd+I opens the chat; true by default. */
  shortcut?: boolean;
  /** Text that readers must agree to before anything but the button is loaded. */
  consent?: string;
  /** Whether questions include their page, its language and version; true by default. */
  scope?: boolean;
  /** Whether readers may rate answers; true by default. */
  feedback?: boolean;
  /** Entries of the page's menu that are on or off; false for no menu. */
  menu?: false | 'false' | Partial<Record<MenuEntry, boolean>>;
  /** Address, http(s) or mailto, of a person to ask where the docs have no answer; `{text}` is the place of what is sent. */
  contact?: string;
  /** What the site knows of its reader, such as the edition or the system; `chapterverse.context` replaces it. */
  context?: string;
  /** Seconds after which a question without a whole answer fails; 60 by default. */
  timeout?: number;
  /** Replacements for strings of the interface. */
  strings?: Partial<Words & Later & { unloaded: string }>;
}

/** `window.chapterverse`: the API for a site's own scripts. */
interface Api {
  open: Open;
  /** Opens the chat and asks. */
  ask(text: string): Promise<void>;
  close(): Promise<void>;
  /** Says of the reader what answers may go by from now on; an empty text takes it back. */
  context(text: string): void;
  /** Listens to "open", "close", "ask" (a `Question`), "answer" (an `Answer`) and "error" (a `Failure`). */
  on(type: string, listener: (detail: any) => void): void;
}
interface Window {
  chapterverse: Api;
}

/** A section of the docs. */
interface Section {
  chapter: string;
  section: string | null;
  url: string | null;
}

/** A source of an answer, with the id that segments cite. */
interface Source extends Section {
  id: string;
  snippet: string;
}

/** A part of an answer with the ids of its sources. */
interface Segment {
  text: string;
  citations: string[];
  /** An API of an older version sends none of what follows. A `quote` has one source. */
  kind?: 'quote' | 'prose' | 'framing';
  check?: 'confirmed' | 'unconfirmed' | 'none';
  /** The exact part of the text that answers. */
  mark?: string | null;
}

interface HTMLElement {
  /** The source that a citation leads to, its snippet being the passage to mark. */
  source?: Section & Partial<Source>;
}

/** The stored part of an answer. */
interface Kept {
  nearest?: Section[];
  follow_ups?: string[];
  searched_as?: { query: string; reason: 'corrected' | 'follow_up'; original: string } | null;
  /** What "partial" means. */
  partial_reason?: 'left_open' | 'unconfirmed' | 'may_help' | 'cut' | 'language' | 'choice' | null;
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
  retrieval_used?: boolean;
}

interface Message extends Kept {
  role: 'user' | 'assistant';
  content: string;
  timestamp: string;
  /** What the reader said of an answer. */
  rating?: 'up' | 'down';
}

/** `sessionStorage["chatbot_session"]`. */
interface Session {
  /** A UUID of version 4, which is the conversation's `thread_id`. */
  session_id: string;
  messages: Message[];
  created_at: string;
}

/** A reader's question, selection, or both. */
interface Question {
  text: string;
  selection?: string;
  /** Asked without the conversation before it. */
  alone?: boolean;
}

/** Body of `POST /v1/chat`. */
interface ChatQuery {
  query?: string;
  selected_text?: string;
  user_context?: string;
  conversation_history: Pick<Message, 'role' | 'content' | 'timestamp' | 'signature'>[];
  thread_id?: string;
  page_url?: string;
  language?: string;
  version?: string;
  filters?: object;
}

/** The latest answered questions, within what the API takes: 10 messages of 4,000 characters, 16,000 in all. */
type Recent = (messages: Message[]) => ChatQuery['conversation_history'];

/**
 * Asks, and resolves to the whole answer. Meanwhile `on` gets the stream's events: `meta` with the `sources`, and
 * `delta` with a segment. Rejects with a `Failure`.
 */
type Chat = (config: Config, query: ChatQuery, stop: AbortSignal, on: OnEvent) => Promise<Answer>;
type OnEvent = (name: string, data: any) => void;
/** Sends JSON to a route below `/v1/`, again with proof of work if required; resolves to a `Response`. */
type Post = (endpoint: string | null, path: string, body: object, signal?: AbortSignal) => Promise<any>;

/** Why there is no answer. */
interface Failure {
  /** A key of the words, or an HTTP status, which may have no words. */
  kind: any;
  /** The API's message. */
  detail?: string;
  /** Seconds to wait, from `Retry-After`, unchecked. */
  wait?: string | null;
}

/** The reader's intent on opening: a question or a selection, put into the field or asked at once. */
type Opening = Partial<Question> & { send?: boolean };
/** Opens the chat; without `focus` the focus stays. */
type Open = (opening?: Opening, focus?: boolean) => Promise<void>;
type Emit = (type: string, detail?: object) => void;

/** The chat on the page, with the state for its later parts. */
interface Panel {
  root: ShadowRoot;
  config: Config;
  strings: Words & Config;
  session: Session;
  /** "side" stands beside the page, "wide" over it, "" floats. */
  shape: string;
  /** The subject of the next question. */
  selection: string;
  /** Shows `selection` if there was one. */
  quote?: HTMLElement;
  /** Removes the edited question and all later turns from the conversation, or cancels the edit. */
  forget?: void | null | ((giveUp?: boolean) => void);
  dialog: HTMLDialogElement;
  head: HTMLElement;
  live: HTMLElement;
  thread: HTMLElement;
  form: HTMLElement;
  field: HTMLTextAreaElement;
  /** What the next question is asked about, above the field. */
  chips: HTMLElement;
  /** Whether the next question searches this page alone. */
  single: boolean;
  /** A window so small that the panel fills it. */
  phone: MediaQueryList;
  /** Draws an answer, new or stored, in its turn; returns the words to announce. */
  draw(turn: Turn, message: Message): string;
  /** Tells why there is no answer; resolves to the words to announce. */
  explain(turn: Turn, failure: Failure): Promise<string>;
  /** Asks a turn's question again, in its place. */
  retry(turn: Turn): void;
  /** Searches this page alone from the next question on, or everything. */
  narrow(single: boolean): void;
  /** Begins another conversation. */
  begin(session: Session): void;
  setShape(name: string): Promise<void>;
  addTurn(question: Question, message: Message): Turn;
  /** Asks; false without a question or during an answer. */
  start(question: Question): boolean;
  open: Open;
  close(): void;
  /** Removes the chat from the page; the conversation stays in the tab. */
  remove(): void;
}
/** `place` is our own element, or the page's element for the chat. */
type CreatePanel = (place: HTMLElement, launcher: HTMLElement, config: Config, words: Words) => Promise<Panel>;

/** One question's place in the conversation, with the parts that later modules add to. */
interface Turn {
  question: Question;
  /** The question as the session keeps it. */
  message: Message;
  node: HTMLElement;
  /** The question's bubble, the answer, and what is below it. */
  asked: HTMLElement;
  body: HTMLElement;
  foot: HTMLElement;
  /** The line of the answer's state, which gets the tools. */
  row: HTMLElement;
  /** The answer as the session keeps it. */
  answer?: Message;
  /** The segments in each child of the body. */
  groups: Segment[][];
  /** What the stream has named as sources, and what of it is cited, by its numbers. */
  sources: Source[];
  cited: Source[];
  /** Whether only the page was searched that the reader was on; unknown of a stored answer. */
  single?: boolean;
  busy(): void;
  /** Shows what an event of the stream brings. */
  hear: OnEvent;
  /** Shows an answer, new or stored, and returns the words to announce. */
  show(answer: Message): string;
  /** Shows a failure, and returns its line; the button to ask again is behind it. */
  fail(kind: string | number, words: string): HTMLElement;
  /** The tools of the answer are there. */
  ready?: Promise<unknown>;
}
/** `message` is the question as the session keeps it. */
type CreateTurn = (panel: Panel, question: Question, message: Message) => Turn;

/** A list of sections as one-line links, with the numbers that the answer has for them. */
type List = (label: string, sections: (Section & Partial<Source>)[], numbers?: string[]) => HTMLElement;

/** Shows a conversation, by default the one that the tab keeps, and resolves when its tools are there. */
type Restore = (panel: Panel, session?: Session) => Promise<void>;

type Tool = 'copy_answer' | 'copy' | 'share' | 'edit' | 'up' | 'down';
type MenuEntry = 'copy' | 'chatgpt' | 'claude' | 'mcp';
/** Watches the page: offers questions about selected text and code, and handles `/ask` in its search field. */
type WatchPage = (host: HTMLElement, config: Config, open: Open) => void;

type Content = Node | string | (Node | string)[];

/**
 * Creates an element. Control and bidi characters, which hide or reorder text, are removed; text is never parsed as
 * HTML.
 */
type El = <K extends keyof HTMLElementTagNameMap>(
  name: K, properties?: Partial<HTMLElementTagNameMap[K]>, ...children: Content[]
) => HTMLElementTagNameMap[K];

/**
 * A link; a `span` with the same content unless the address is http(s), without credentials, white space or hidden
 * characters. A link to another site opens a new tab.
 */
type Link = (address: string | null | undefined, className: string, ...children: Content[]) => HTMLElement;

/** Creates the marker for the end of segment number `index`. */
type Cite = (index: number) => Node | string;

/** Renders Markdown, split into segments, as DOM nodes. */
type Render = (segments: Segment[], cite: Cite) => DocumentFragment;

/** Renders lines as blocks; `depth` is the number of enclosing quotes and list items. */
type Blocks = (lines: string[], cite: Cite, depth: number) => DocumentFragment;

/** Renders a paragraph's content; inside a link (`linked`) there are no further links. */
type Inline = (text: string, cite: Cite, linked?: boolean) => (Node | string)[];
