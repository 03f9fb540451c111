// @ts-check
export const sheet = new CSSStyleSheet();
// Colors are the site's own, by the names of Material, stock MkDocs, Docusaurus, VitePress and Furo. Their links are too
// pale for small text on some palettes, so small text has the text's color, with the link's color beside it.
sheet.replaceSync(`
:host{
  --_bg:var(--chapterverse-bg,var(--md-default-bg-color,var(--bs-body-bg,var(--ifm-background-surface-color,var(--vp-c-bg,var(--color-background-primary,light-dark(#fff,#1a1c22)))))));
  --_fg:var(--chapterverse-fg,var(--md-default-fg-color,var(--bs-body-color,var(--ifm-font-color-base,var(--vp-c-text-1,var(--color-foreground-primary,light-dark(#1d2129,#e4e6ec)))))));
  --_link:var(--chapterverse-link,var(--md-typeset-a-color,var(--bs-link-color,var(--ifm-link-color,var(--vp-c-brand-1,var(--color-brand-content,light-dark(#3b49b8,#a3aeff)))))));
  --_soft:color-mix(in srgb,var(--_fg) 80%,var(--_bg));
  --_line:color-mix(in srgb,var(--_fg) 15%,var(--_bg));
  --_tint:color-mix(in srgb,var(--_link) 12%,var(--_bg));
  --_shade:color-mix(in srgb,var(--_fg) 5%,var(--_bg))}
:host(chapter-verse-ask){display:block}
dialog{position:fixed;inset-block:auto var(--_bottom);inset-inline:auto var(--_end);box-sizing:border-box;
  width:min(430px,100vw - 40px);height:min(700px,100dvh - 84px - var(--_bottom));max-width:none;max-height:none;margin:0;padding:0;
  flex-direction:column;border-radius:16px;background:var(--_bg);color:var(--_fg);font-size:15px;line-height:1.6;
  overflow:hidden;outline:0;box-shadow:0 4px 16px #0003}
dialog[open]{display:flex}
.side{inset-block:0;inset-inline-end:0;height:auto;border-radius:0}
.inline{position:static;width:auto;box-shadow:none}
dialog button{all:unset;box-sizing:border-box;cursor:pointer}
dialog,pre,th,td,dialog .code button,.source,dialog .chip,.field{border:1px solid var(--_line)}
:focus-visible,dialog button:focus-visible{outline:2px solid var(--_link)}
.head,.field,.status{display:flex;align-items:center;gap:6px}
.head{padding:10px 10px 10px 18px;border-bottom:1px solid var(--_line)}
h2{flex:1;margin:0;font-size:16px}
dialog .icon{display:flex;padding:8px;border-radius:10px;color:var(--_soft)}
dialog .icon:hover,.chip:hover{background:var(--_tint);color:var(--_fg)}
.thread{position:relative;flex:1;padding:16px 18px;overflow:auto;overscroll-behavior:contain;overflow-wrap:anywhere}
.turn *,q,textarea{unicode-bidi:plaintext}
.turn:last-child{min-height:100%}
.asked{width:fit-content;max-width:85%;margin:0 0 12px;margin-inline-start:auto;padding:8px 14px;border-radius:16px 16px 4px;background:var(--_tint);white-space:pre-wrap}
.clip{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden;color:var(--_soft);font-size:13px;line-height:1.5}
q{flex:1;margin-bottom:6px;quotes:none}
p,ul,ol,blockquote,.code,.scroll,hr{margin:0 0 12px}
h3,h4,h5,h6{margin:14px 0 8px;font-size:16px}
ul,ol{padding-inline-start:24px}
li>*{margin:4px 0}
a{color:inherit;text-decoration-color:var(--_link)}
q,blockquote{padding-inline-start:10px;border-inline-start:3px solid var(--_line)}
hr{border:0;border-top:1px solid var(--_line)}
code{padding:1px 5px;border-radius:5px;font:.87em var(--md-code-font-family,var(--bs-font-monospace,ui-monospace,monospace))}
code,pre,th{background:var(--_shade)}
pre,.scroll{overflow:auto;overflow-wrap:normal}
pre{margin:0;padding:12px 14px;border-radius:10px;line-height:1.5}
pre code{padding:0;background:0 0}
.code{position:relative}
table{border-collapse:collapse}
th,td{padding:6px 10px;text-align:start}
sup{margin-inline-start:3px;line-height:0}
.cite+*{margin-inline-start:5px}
.cite{padding:1px 5px;border-radius:6px;background:var(--_tint);font-size:11px;font-weight:600;text-decoration:none}
.cite:hover{background:var(--_fg);color:var(--_bg)}
.code button,.status{color:var(--_soft);font-size:13px}
.status{margin:14px 0 8px}
svg{flex:none;width:20px;fill:none;stroke:currentColor;stroke-width:1.8;stroke-linecap:round}
.sources{padding:0;list-style:none}
dialog .chip,.source{display:block;margin:8px 0;padding:7px 12px;border-radius:10px;text-decoration:none}
dialog .chip{width:fit-content}
.chip svg{width:14px;margin-inline-start:6px;vertical-align:-2px}
.source:hover{border-color:var(--_link)}
b{color:var(--_fg)}
form{padding:4px 14px 14px;border-top:1px solid var(--_line)}
form .chip{padding:2px 10px;color:var(--_soft);font-size:12px}
.field{margin-top:10px;padding:4px;border-color:var(--_soft);border-radius:14px;align-items:end}
.field:focus-within{border-color:var(--_link)}
textarea{flex:1;max-height:130px;padding:6px 8px;border:0;outline:0!important;resize:none;field-sizing:content;background:0 0;color:inherit;font:inherit;font-size:16px}
::placeholder{color:var(--_soft)}
dialog .field .icon{background:var(--_accent);color:var(--_on)}
.sr{position:absolute;width:1px;overflow:hidden;clip-path:inset(50%)}
[hidden]{display:none!important}
@media(max-width:480px),(max-height:480px){dialog:not(.inline){inset:0!important;width:100%;height:100dvh;border:0;border-radius:0}}`);
