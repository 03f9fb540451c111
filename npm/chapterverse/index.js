// Finds and runs the command line. Every option is checked there, so all generators have the same ones.

import {spawn} from 'node:child_process';
import {accessSync, constants, readFileSync} from 'node:fs';
import {delimiter, join} from 'node:path';
import {createInterface} from 'node:readline';

const {version} = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8'));
const WINDOWS = process.platform === 'win32';
const PACKAGE = `chapterverse[api]==${version}`;
const MISSING =
  'chapterverse: The command line is missing. Run `pip install "chapterverse[api]"` with Python 3.11 or newer, or ' +
  'install uv (https://docs.astral.sh/uv/), which runs it without an installation.';

/** Returns the program and its first arguments: an environment's own, else one that uv or pipx runs. */
export function findCommand(cwd, env = process.env) {
  if (env.CHAPTERVERSE_COMMAND) return env.CHAPTERVERSE_COMMAND.trim().split(/\s+/);
  const environments = [env.VIRTUAL_ENV, join(cwd, '.venv'), join(cwd, 'venv')].filter(Boolean);
  const scripts = environments.map((folder) => join(folder, WINDOWS ? 'Scripts' : 'bin'));
  const folders = (env.PATH ?? env.Path ?? '').split(delimiter).filter(Boolean);
  const own = program('chapterverse', [...scripts, ...folders]);
  if (own) return [own];
  const uvx = program('uvx', folders);
  if (uvx) return [uvx, '--from', PACKAGE, 'chapterverse'];
  const pipx = program('pipx', folders);
  if (pipx) return [pipx, 'run', '--spec', PACKAGE, 'chapterverse'];
  throw new Error(MISSING);
}

function program(name, folders) {
  for (const folder of folders) {
    const path = join(folder, WINDOWS ? `${name}.exe` : name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

/** Whether a failed index fails the build: as the option says, else wherever a program builds and nobody reads warnings. */
export function isStrict(options, env = process.env) {
  return options.strict ?? !['', '0', 'false'].includes((env.CI ?? '').toLowerCase());
}

/** Returns options that name the site to its readers, unless they do so already. */
export function nameSite(options, site) {
  if (!site || typeof site !== 'string') return options;
  return {...options, widget: {...options.widget, strings: {site, ...options.widget?.strings}}};
}

/**
 * Puts the chat into a built site and indexes it; rejects if the build must fail.
 *
 * @param {import('./index.d.ts').BuiltSite} site `cwd` is the folder of the
 *   generator's configuration, `setting` what the generator calls the site's address.
 *   `versions` has each docs version with a folder of its pages, where one build holds several.
 */
export async function publish(options, {cwd, siteDir, baseUrl, setting, versions = []}) {
  const args = ['publish', siteDir, '--config', '-', '--address-setting', setting];
  if (baseUrl) args.push('--base-url', baseUrl);
  for (const [version, folder] of versions) args.push('--version-path', `${version}=${folder}`);
  const child = start(cwd, args, 'inherit');
  // Left out where nothing asks for it, so that the file of the project may.
  child.stdin.end(JSON.stringify({...options, strict: isStrict(options) || options.strict}));
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  if (code !== 0) throw new Error('chapterverse: The build fails for the reason above.');
}

function start(cwd, args, stdout) {
  const [file, ...first] = findCommand(cwd);
  const child = spawn(file, [...first, ...args], {cwd, stdio: ['pipe', stdout, 'inherit']});
  // A command that ends early tells the reason itself.
  child.stdin.on('error', () => {});
  return child;
}

// A generator may load its plugins anew for each change.
const PREVIEW = Symbol.for('chapterverse.preview');

/** The API beside a generator's own preview. */
export class Preview {
  /** Starts it, and stops the one before. Without a chat the preview goes on: returns undefined and tells the reason. */
  static async start(options, cwd) {
    globalThis[PREVIEW]?.stop();
    let child;
    try {
      child = start(cwd, ['preview'], 'pipe');
    } catch (error) {
      console.warn(`${error.message} The preview has no chat.`);
      return undefined;
    }
    child.stdin.write(`${JSON.stringify(options)}\n`);
    const line = await new Promise((resolve) => {
      child.on('error', () => resolve(undefined)).on('close', () => resolve(undefined));
      createInterface({input: child.stdout}).once('line', resolve);
    });
    if (line === undefined) {
      console.warn('chapterverse: The preview has no chat, for the reason above.');
      return undefined;
    }
    // The command ends with its input, so nothing is left behind where the generator is killed.
    for (const handle of [child, child.stdin, child.stdout]) handle.unref?.();
    return (globalThis[PREVIEW] = new Preview(child, JSON.parse(line).launcher));
  }

  constructor(child, launcher) {
    this.child = child;
    this.launcher = launcher;
  }

  /** Indexes what the preview shows: `pages` has the address of each file, relative to `baseUrl`. */
  show(baseUrl, slugs, pages) {
    clearTimeout(this.waiting);
    // An editor may write several files at once.
    const line = `${JSON.stringify({base_url: baseUrl, slugs, pages})}\n`;
    this.waiting = setTimeout(() => this.child.stdin.write(line), 200);
  }

  stop() {
    clearTimeout(this.waiting);
    this.child.stdin.end();
  }
}

/** Returns the element by which a page states the file that it was written in. */
export function sourceMeta(path) {
  const content = path.replaceAll('\\', '/').replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
  return `<meta name="chapterverse:source" content="${content}">`;
}
