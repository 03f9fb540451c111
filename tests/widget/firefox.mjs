// Drives Firefox over WebDriver BiDi for the tests in Python. Every line on standard input is a call as JSON, every line
// on standard output its answer. The program's one argument is the path of Firefox.
import { createInterface } from 'node:readline';
import puppeteer from 'puppeteer-core';

const browser = await puppeteer.launch({ browser: 'firefox', executablePath: process.argv[2], protocolTimeout: 120_000 });
const tabs = [];

const open = async ({ script }) => {
  const page = await browser.newPage();
  const heard = { requests: [], thrown: [], dialogs: [] };
  page.on('request', request => heard.requests.push(request.url()));
  page.on('pageerror', error => heard.thrown.push(`${error.message ?? error}`));
  page.on('dialog', dialog => {
    heard.dialogs.push(dialog.message());
    return dialog.dismiss();
  });
  await page.setViewport({ width: 1280, height: 800 });
  await page.evaluateOnNewDocument(script);
  return tabs.push({ page, heard }) - 1;
};

const calls = {
  goto: ({ page }, { url }) => page.goto(url).then(() => null),
  reload: ({ page }) => page.reload().then(() => null),
  // As a string, because a strict page lets nobody make a function of one.
  evaluate: ({ page }, { program, argument }) => page.evaluate(`(${program})(${JSON.stringify(argument)})`),
  click: ({ page }, { x, y }) => page.mouse.click(x, y),
  type: ({ page }, { text }) => page.keyboard.type(text),
  press: ({ page }, { key }) => page.keyboard.press(key),
  close: ({ page, heard }) => page.close().then(() => heard),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { call, tab, ...rest } = JSON.parse(line);
  let answer;
  try {
    answer = { result: (await (call === 'open' ? open(rest) : calls[call](tabs[tab], rest))) ?? null };
  } catch (error) {
    answer = { error: `${error}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
