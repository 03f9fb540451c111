/** The options of the plugin, with the names of the MkDocs plugin. */
export interface Options {
  /** Whether the plugin is active. */
  enabled?: boolean;
  /** Whether a build writes the index; unset means yes for the embedded store and no for a remote one. */
  publish?: boolean;
  /**
   * Whether the build fails if the index can't be written, or if `endpoint` or the site's address is missing; unset means
   * yes where the variable `CI` is set.
   */
  strict?: boolean;
  /** Address of the API that the chat asks; `/` is the site's own origin. */
  endpoint?: string;
  /** Place of the index: `edge:PATH`, `qdrant:URL` or `s3://BUCKET/PREFIX`. */
  store?: string;
  /** Maker of dense vectors: `none`, or `cohere`, `bedrock`, `openai`, `fastembed` with `:MODEL`. */
  embedder?: string;
  /** File with the chat's name, language and tone. */
  persona?: string;
  /** Folder of FAQ and memory files. */
  knowledge?: string;
  /** Switches and counts of documents by type: `enable_faq`, `faq_top_k` … */
  documents?: Record<string, boolean | number>;
  /** Name of the site's index; unset takes it from the site's address. */
  site?: string;
  /** Size that chunks are packed to, in cl100k tokens; the cap is 512. */
  chunk_tokens?: number;
  /** Pages not to index, as patterns in the style of .gitignore on source files or built pages. */
  exclude?: string[];
  /** Listings, archives and search pages to index all the same, as patterns like those of `exclude`. */
  include?: string[];
  /** Sources beyond the site: files, addresses and sitemaps. */
  also?: (string | { file: string; url?: string } | { url: string } | { sitemap: string; depth?: number })[];
  /** Files for agents: all or none, or each by its name; `overwrite` replaces files that are not ours. */
  agents?: boolean | { markdown?: boolean; llms_txt?: boolean; llms_full_txt?: boolean; skill?: boolean; overwrite?: boolean };
  /** Whether readers' questions are asked again after each build that changes the index. */
  report?: boolean;
  /** Options of the chat. */
  widget?: Record<string, unknown>;
}

/** A built site; `setting` is what its generator calls the site's address. */
export interface BuiltSite {
  cwd: string;
  siteDir: string;
  baseUrl?: string;
  setting: string;
  /** Each docs version with a folder of its pages, where one build holds several. */
  versions?: [version: string, folder: string][];
}

export function findCommand(cwd: string, env?: Record<string, string | undefined>): string[];
export function isStrict(options: Options, env?: Record<string, string | undefined>): boolean;
export function nameSite(options: Options, site: unknown): Options;
export function publish(options: Options, site: BuiltSite): Promise<void>;
export function sourceMeta(path: string): string;

export class Preview {
  static start(options: Options, cwd: string): Promise<Preview | undefined>;
  readonly launcher: string;
  show(baseUrl: string, slugs: string, pages: Record<string, string>): void;
  stop(): void;
}
