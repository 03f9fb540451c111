// Renders answers in the page and tells what there is in them that must not be. An expression, so that every engine's
// driver can run it: `{ module, answers }` in, a list of findings out.
async ({ module, answers }) => {
  const { render } = await import(module);

  const BLOCKS = 'p h3 h4 h5 h6 ul li blockquote em strong br hr table thead tbody tr';
  /** Every element that may appear, with the values that each of its attributes may have. */
  const ALLOWED = {
    ...Object.fromEntries(BLOCKS.split(' ').map(name => [name, {}])),
    ol: { start: /^\d{1,9}$/ },
    div: { class: /^(code|scroll)$/, tabindex: /^0$/ },
    pre: { tabindex: /^0$/ },
    code: { class: /^language-[\w.+#-]{1,32}$/ },
    th: { style: /^text-align: (right|center);$/ },
    td: { style: /^text-align: (right|center);$/ },
    span: { class: /^$/ },
    a: {
      class: /^$/,
      href: /^https?:\/\/[^\s\\@/]+\/[^\s\\]*$/,
      title: /^[^\s<>"/]+$/,
      target: /^_blank$/,
      rel: /^noopener noreferrer nofollow ugc$/,
    },
  };
  const HIDDEN = /[\u202A-\u202E\u2066-\u2069\u200E\u200F\u061C\uFDD0\uFDD1]|(?![\t\n])\p{Cc}/u;
  const HTML = 'http://www.w3.org/1999/xhtml';

  const judge = root => {
    const found = [];
    for (const node of root.querySelectorAll('*')) {
      const allowed = node.namespaceURI === HTML && Object.hasOwn(ALLOWED, node.localName) && ALLOWED[node.localName];
      if (!allowed) found.push(`element ${node.localName}`);
      for (const { name, value } of allowed ? node.attributes : []) {
        if (!Object.hasOwn(allowed, name) || !allowed[name].test(value)) found.push(`${node.localName} ${name}=${value}`);
      }
      if (node.localName === 'a' && !/^https?:$/.test(node.protocol)) found.push(`protocol ${node.protocol}`);
      if (node.localName === 'a' && (node.username || node.password)) found.push(`credentials ${node.href}`);
      if (node.localName === 'a' && node.origin !== location.origin && !node.rel) found.push(`no rel ${node.href}`);
    }
    return found;
  };
  const depth = root => {
    let deepest = 0;
    for (const node of root.querySelectorAll('*')) {
      if (node.firstElementChild) continue;
      let levels = 0;
      for (let up = node; up && up !== root; up = up.parentNode) levels++;
      deepest = Math.max(deepest, levels);
    }
    return deepest;
  };

  // Serialized and parsed again it must be as harmless; what is parsed here never becomes part of the page.
  const policy = window.trustedTypes?.createPolicy('reparse', { createHTML: text => text });
  const reparsed = html => new DOMParser().parseFromString(policy?.createHTML(html) ?? html, 'text/html').body;

  const root = document.body.appendChild(document.createElement('div')).attachShadow({ mode: 'open' });
  const findings = [];
  for (const [index, segments] of answers.entries()) {
    const note = finding => findings.push([index, finding]);
    try {
      const box = document.createElement('div');
      box.append(render(segments, () => ''));
      root.append(box);
      judge(box).forEach(note);
      // The policy of the page would report a style attribute that is parsed, though not one that is set.
      judge(reparsed(box.innerHTML.replaceAll(/ style="text-align: \w+;"/g, ''))).forEach(finding => note(`reparsed: ${finding}`));
      if (HIDDEN.test(box.textContent)) note(`hidden character in ${JSON.stringify(box.textContent)}`);
      if (depth(box) > 80) note(`${depth(box)} levels deep`);
    } catch (error) {
      note(`thrown: ${error}`);
    }
  }
  // Time for what is in the page now to load, fail and run.
  await new Promise(resolve => setTimeout(resolve, 50));
  if ('hacked' in window) findings.push([null, 'a script ran']);
  for (const name of ['hacked', 'polluted']) if (name in Object.prototype) findings.push([null, `Object.prototype.${name}`]);
  root.host.remove();
  return findings;
}
