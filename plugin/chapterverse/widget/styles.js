// @ts-check
/** The names of colors in pydata's themes, Material, stock MkDocs, Docusaurus, VitePress and Furo. */
const NAMES = {
  bg: 'chapterverse-bg pst-color-background md-default-bg-color bs-body-bg ifm-background-surface-color vp-c-bg color-background-primary',
  fg: 'chapterverse-fg pst-color-text-base md-default-fg-color bs-body-color ifm-font-color-base vp-c-text-1 color-foreground-primary',
  link: 'chapterverse-link pst-color-link md-typeset-a-color bs-link-color ifm-link-color vp-c-brand-1 color-brand-content',
};

/** Gives the chat the site's colors: by their names, or else those that its page shows. @type {(host: HTMLElement) => void} */
export const takeColors = host => {
  const styles = getComputedStyle(host);
  const { color, backgroundColor } = getComputedStyle(document.body);
  const link = document.querySelector(':is(main,article,[role=main]) a[href]');
  /** @type {Record<string, any>} */
  const shown = / 0\)$/.test(backgroundColor) ? {} : { bg: backgroundColor, fg: color, link: link && getComputedStyle(link).color };
  for (const [name, names] of Object.entries(NAMES)) {
    // A name without a value is no color.
    const known = names.split(' ').find(each => styles.getPropertyValue(`--${each}`).trim());
    host.style.setProperty(`--_${name}`, known ? `var(--${known})` : shown[name] ?? '');
  }
};

export const sheet = new CSSStyleSheet();
// Links are too pale for small text on some palettes, so small text has the text's color, with the link's color beside it.
sheet.replaceSync(`
:host{--_bg:light-dark(#fff,#1a1c22);--_fg:light-dark(#1d2129,#e4e6ec);--_link:light-dark(#3b49b8,#a3aeff);
  --_soft:color-mix(in srgb,var(--_fg) 80%,var(--_bg));
  --_line:color-mix(in srgb,var(--_fg) 15%,var(--_bg));
  --_tint:color-mix(in srgb,var(--_link) 12%,var(--_bg));
  --_shade:color-mix(in srgb,var(--_fg) 5%,var(--_bg))}
dialog{position:fixed;inset-block:auto var(--_bottom);inset-inline:auto var(--_end);box-sizing:border-box;
  width:min(clamp(430px,30vw,480px),100% - 40px);height:min(700px,100% - 84px - var(--_bottom));max-width:none;max-height:none;margin:0;padding:0;
  flex-direction:column;border-radius:16px;background:var(--_bg);color:var(--_fg);font-size:15px;line-height:1.6;
  overflow:hidden;outline:0;box-shadow:0 4px 16px #0003;user-select:text}
dialog[open]{display:flex;animation:140ms open}
@keyframes open{from{opacity:0}}
.inline{position:static;width:auto;height:min(700px,100dvh);box-shadow:none}
dialog button{all:unset;box-sizing:border-box;cursor:pointer}
dialog,.code,.card,dialog .chip,.field,.source,th,td{border:1px solid var(--_line)}
:focus-visible,dialog button:focus-visible{outline:2px solid var(--_link)}
.head,.field{display:flex;align-items:center;gap:6px}
.head{padding:10px;padding-inline-start:18px;border-bottom:1px solid var(--_line)}
h2{flex:1;margin:0;font-size:16px}
dialog .icon{display:flex;padding:8px;border-radius:10px;color:var(--_soft)}
dialog .icon:hover,.chip:hover,[aria-pressed=true]{background:var(--_tint);color:var(--_fg)}
.thread{position:relative;flex:1;padding:16px 18px;overflow:auto;overscroll-behavior:contain;overflow-wrap:anywhere}
.turn *,.chip,h2,p,textarea{unicode-bidi:plaintext}
.turn{padding-top:12px}
.turn:last-child{min-height:100%}
.asked{width:fit-content;max-width:85%;margin:0 0 12px;margin-inline-start:auto;padding:8px 14px;border-radius:16px;border-end-end-radius:4px;background:var(--_tint);white-space:pre-wrap}
p,ul,ol,blockquote,.code,.scroll,hr,.card{margin:0 0 12px}
ul,ol{padding-inline-start:24px}
a{color:inherit;text-decoration-color:var(--_link)}
code{padding:1px 5px;border-radius:5px;font:.87em var(--md-code-font-family,var(--bs-font-monospace,ui-monospace,monospace))}
code,.code,.error{background:var(--_shade)}
pre,.scroll{overflow:auto;overflow-wrap:normal}
pre{grid-row:1/3;margin:0;padding:12px 14px;line-height:1.5}
pre code{padding:0;background:0 0}
.code{display:grid;grid:auto auto/minmax(0,1fr) auto;align-items:start;border-radius:10px;direction:ltr}
sup{margin-inline-start:3px;line-height:0}
.cite{padding:1px 5px;border-radius:6px;background:var(--_tint);font-size:11px;font-weight:600;text-decoration:none}
.status{display:flex;flex-wrap:wrap;align-items:center;gap:6px;margin:8px 0;color:var(--_soft);font-size:13px}
svg{flex:none;width:20px;fill:none;stroke:currentColor;stroke-width:1.8;stroke-linecap:round}
dialog .chip{display:block;box-sizing:border-box;width:fit-content;max-width:100%;margin:8px 0;padding:7px 12px;border-radius:10px;text-decoration:none}
.chip span,.busy span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.chip svg{width:14px;margin-inline-start:6px;vertical-align:-2px}
table{border-collapse:collapse;font-size:14px}
th,td{min-width:4.5em;padding:6px 10px;text-align:start;vertical-align:top}
th{background:var(--_shade)}
.sources{display:flex;flex-wrap:wrap;gap:6px;padding:0;list-style:none;font-size:13px}
.sources li{max-width:100%}
.source{display:flex;align-items:baseline;gap:8px;padding:3px 10px;border-radius:10px;text-decoration:none}
.source b{overflow:hidden;font-weight:400;text-overflow:ellipsis;white-space:nowrap}
.card{border-radius:10px;overflow:hidden}
.card>div{padding:12px 14px 1px}
.crumb{display:flex;gap:8px;align-items:baseline;padding:7px 14px;background:var(--_shade);font-size:13px;font-weight:600;line-height:1.4;text-decoration:none}
.error{padding:8px 14px;border-inline-start:4px solid #d32f2f}
.ask{padding:8px 14px;border-top:1px solid var(--_line)}
.chips{display:flex;gap:6px}
dialog .chips .chip{display:flex;align-items:center;min-width:4em;min-height:28px;margin:0;padding:1px 10px;color:var(--_soft);font-size:12px}
.small{margin:6px 4px 0;color:var(--_soft);font-size:12px;line-height:1.4}
.field{margin-top:8px;padding:4px;border-color:var(--_soft);border-radius:14px;align-items:end}
.field:focus-within{border-color:var(--_link)}
textarea{flex:1;max-height:130px;padding:6px 8px;border:0;outline:0!important;resize:none;field-sizing:content;background:0 0;color:inherit;font:inherit;font-size:16px}
::placeholder{color:var(--_soft)}
:placeholder-shown+.send{opacity:.5}
dialog .field .icon{background:var(--_accent);color:var(--_on)}
.sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.status>:empty,[hidden]{display:none!important}
@media(max-width:480px),(max-height:480px){dialog:not(.inline){inset:0!important;width:100%;height:100dvh;border:0;border-radius:0}}
@media(max-height:480px){.head{padding-block:0}.ask{padding-block:3px}.field{margin:0;padding:1px}.small,.chips{display:none}.thread{padding-block:8px}}
@media(forced-colors:active){.field:focus-within{outline:2px solid}[aria-pressed=true]{outline:1px solid}}`);
