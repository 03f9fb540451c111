/**
 * The values and functions that the widget's modules share, as global types. Browsers never load this file, so the
 * long explanations stand here. On the wire, `lambda/chapterverse_api/contract.py` has the last word.
 */

type Words = typeof import('./lang/en.js').default;
type Later = typeof import('./lang/more/en.js').default;
type Icon = keyof typeof import('./render.js').ICONS;

/** What a site decides: the default export of `config.js`, with what the script tag says in `data-` attributes. */
interface Config {
  /** Base of the API, without `/v1`. Empty: this page's own origin. */
  endpoint: string;
  /** Words on the launcher and at the head of the panel; the launcher sees to it that there are some. */
  title: string;
  /** The same by language, for pages in several; it counts where there is no `title`. */
  titles?: Record<string, string>;
  /** Docs version of this page. */
  version?: string;
  /** First line of an empty conversation. */
  greeting?: string;
  /** Shown in the empty field. */
  placeholder?: string;
  /** Questions offered in an empty conversation; in one text they are JSON, or divided by "|". */
  starters?: string[] | string;
  /** How the panel stands on wide screens; "floating" when absent. */
  layout?: 'floating' | 'side';
  /** Whether Ctrl+I or Cmd+I opens the chat; true when absent. */
  shortcut?: boolean;
  /** What readers must agree to before anything but the button is loaded. */
  consent?: string;
  /** Whether questions say which page they are asked from, and its language and version; true when absent. */
  scope?: boolean;
  /** Whether readers may rate answers; true when absent. */
  feedback?: boolean;
  /** Seconds after which a question without a whole answer has failed; 60 when absent. */
  timeout?: number;
  /** Any of the interface's own strings, in other words. */
  strings?: Partial<Words & Later & { unloaded: string }>;
}

/** The interface's words in the page's language, with what the site says instead; `more/` holds what is said later. */
type FindWords = {
  (config: Config): Promise<Words & Config>;
  (config: Config, part: 'more/'): Promise<Later & Config>;
};

/** `window.chapterverse`: what a site's own scripts may do. */
interface Api {
  open: Open;
  /** Opens the chat and asks. */
  ask(text: string): Promise<void>;
  close(): Promise<void>;
  /** Hears of "open", "close", "ask" (a `Question`), "answer" (an `Answer`) and "error" (a `Failure`). */
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

/** What a session keeps of an answer. */
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
  follow_ups?: string[];
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
  page_url?: string;
  language?: string;
  version?: string;
}

/** The latest answered questions, within what the API takes: 10 messages of 4,000 characters, 16,000 in all. */
type Recent = (messages: Message[]) => ChatQuery['conversation_history'];

/**
 * Asks, and resolves to the verified answer; meanwhile `on` hears the events of a stream: `meta`, with the `sources`
 * that were found, and `delta`, with a piece of the draft as its `text`. Rejects with a `Failure`.
 */
type Chat = (config: Config, query: ChatQuery, stop: AbortSignal, on: OnEvent) => Promise<Answer>;
type OnEvent = (name: string, data: any) => void;
/** Sends JSON to a route below `/v1/`, and once more where the API wants work first; resolves to a `Response`. */
type Post = (endpoint: string, path: string, body: object, signal?: AbortSignal) => Promise<any>;

/** Why there is no answer. */
interface Failure {
  /** A key of the words, or an HTTP status, which may have none of its own. */
  kind: any;
  /** The API's own sentence. */
  detail?: string;
  /** Seconds to wait, from `Retry-After`; it may hold anything. */
  wait?: string | null;
}

/** What the reader wants the chat to do when it opens: a question or a selection, put into the field or asked at once. */
type Opening = Partial<Question> & { send?: boolean };
/** Opens the chat; without `focus` the reader stays where they are. */
type Open = (opening?: Opening, focus?: boolean) => Promise<void>;
type Emit = (type: string, detail?: object) => void;

/** The chat on the page, with what its later parts work on. */
interface Panel {
  root: ShadowRoot;
  config: Config;
  strings: Words & Config;
  session: Session;
  /** What the next question is about. */
  selection: string;
  /** Shows `selection`, once there was one. */
  quote?: HTMLElement;
  /** Takes the question that is being edited out of the conversation, with all behind it; or gives up the edit. */
  forget?: void | null | ((giveUp?: boolean) => void);
  thread: HTMLElement;
  form: HTMLElement;
  field: HTMLTextAreaElement;
  addTurn(question: Question, message: Message): Turn;
  /** Asks; false if it can't: nothing is asked, or an answer is on its way. */
  start(question: Question): boolean;
  open: Open;
  close(): void;
  /** Takes the chat off the page; the conversation stays in the tab. */
  remove(): void;
}
/** `place` is our own element, or one of the page that is to hold the chat. */
type CreatePanel = (place: HTMLElement, launcher: HTMLElement, config: Config) => Promise<Panel>;

/** One question's place in the conversation. `show` and `fail` return the words to announce. */
interface Turn {
  node: HTMLElement;
  busy(): void;
  draft(markdown: string): void;
  /** `draft` is what was shown before the answer was checked. */
  show(answer: Answer, draft?: string): string;
  fail(failure: Failure): Promise<string>;
}
/** `message` is the question as the session keeps it. */
type CreateTurn = (panel: Panel, question: Question, message: Message) => Turn;

/** Shows the conversation that the tab keeps. */
type Restore = (panel: Panel) => void;

/** Says in `foot` what went wrong and offers to ask again; resolves to what it said. */
type Explain = (panel: Panel, failure: Failure, turn: Pick<Asked, 'question' | 'message' | 'node' | 'foot'>) => Promise<string>;

/** A turn that was answered, by its parts: the question's bubble, the answer, and all below it. */
interface Asked {
  question: Question;
  message: Message;
  answer: Answer;
  node: HTMLElement;
  asked: HTMLElement;
  body: HTMLElement;
  foot: HTMLElement;
}
type Tool = 'copy_answer' | 'share' | 'edit' | 'up' | 'down';
/** Gives a turn its tools: edit, copy, share, rate, and what to ask next. */
type Equip = (panel: Panel, turn: Asked) => Promise<void>;

/** Shows above the field what the next question is about: the panel's selection, unless that was sent meanwhile. */
type Quote = (panel: Panel) => Promise<void>;

/** Goes where a citation leads, and marks the passage that it cites. */
type Go = (anchor: HTMLAnchorElement) => void;

/** Attends to the page: offers to ask about what is selected and about code, and takes `/ask` from its search field. */
type Attend = (host: HTMLElement, config: Config, open: Open) => void;

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

/** Makes the marker for the end of segment number `index`. */
type Cite = (index: number) => Node | string;

/** Markdown, cut into segments, as DOM nodes. */
type Render = (segments: Segment[], cite: Cite) => DocumentFragment;

/** Lines as blocks; `depth` counts the quotes and list items around them. */
type Blocks = (lines: string[], cite: Cite, depth: number) => DocumentFragment;

/** The content of a paragraph; inside a link (`linked`) there is no other. */
type Inline = (text: string, cite: Cite, linked?: boolean) => (Node | string)[];
