// @ts-check
export const sheet = new CSSStyleSheet();
// Colors are the site's own, as Material, stock MkDocs, Docusaurus, VitePress and Furo name them.
sheet.replaceSync(`
:host{
  --_bg:var(--chapterverse-bg,var(--md-default-bg-color,var(--bs-body-bg,var(--ifm-background-color,var(--vp-c-bg,var(--color-background-primary,light-dark(#fff,#1a1c22)))))));
  --_fg:var(--chapterverse-fg,var(--md-default-fg-color,var(--bs-body-color,var(--ifm-font-color-base,var(--vp-c-text-1,var(--color-foreground-primary,light-dark(#1d2129,#e4e6ec)))))));
  --_link:var(--chapterverse-link,var(--md-typeset-a-color,var(--bs-link-color,var(--ifm-link-color,var(--vp-c-brand-1,var(--color-brand-content,light-dark(#3b49b8,#a3aeff)))))));
  --_soft:color-mix(in srgb,var(--_fg) 72%,var(--_bg));
  --_line:color-mix(in srgb,var(--_fg) 15%,var(--_bg));
  --_tint:color-mix(in srgb,var(--_link) 10%,var(--_bg));
  --_shade:color-mix(in srgb,var(--_fg) 5%,var(--_bg))}
dialog{position:fixed;inset-block:auto 20px;inset-inline:auto 20px;box-sizing:border-box;
  width:min(430px,100vw - 40px);height:min(700px,100dvh - 40px);max-width:none;max-height:none;margin:0;padding:0;
  flex-direction:column;border-radius:16px;background:var(--_bg);color:var(--_fg);font-size:15px;line-height:1.6;
  overflow:hidden;outline:0;box-shadow:0 2px 8px #0002,0 16px 48px #0004;animation:i .18s ease-out}
dialog[open]{display:flex}
dialog button{all:unset;box-sizing:border-box;cursor:pointer}
dialog,pre,th,td,.code button,.source,dialog .chip,.field{border:1px solid var(--_line)}
:focus-visible,dialog button:focus-visible{outline:2px solid var(--_link)}
header,.quote,.field,.status{display:flex;align-items:center;gap:6px}
header{padding:10px 10px 10px 18px;border-bottom:1px solid var(--_line)}
h2{flex:1;margin:0;font-size:16px}
dialog .icon{display:flex;padding:8px;border-radius:10px;color:var(--_soft)}
dialog .icon:hover,.chip:hover{background:var(--_tint);color:var(--_link)}
.thread{position:relative;flex:1;padding:16px 18px;overflow:auto;overscroll-behavior:contain;scrollbar-width:thin}
.turn{overflow-wrap:anywhere}
.turn:last-child{min-height:100%}
.asked{width:fit-content;max-width:85%;margin:0 0 14px auto;padding:8px 14px;border-radius:16px 16px 4px;background:var(--_tint);white-space:pre-wrap}
.clip{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden;color:var(--_soft);font-size:13px;line-height:1.45}
q{flex:1;margin-bottom:6px;padding-inline-start:10px;quotes:none}
p,ul,ol,blockquote,.code,.scroll,hr{margin:0 0 12px}
h3,h4,h5,h6{margin:18px 0 8px;font-size:16px}
ul,ol{padding-inline-start:24px}
li>*{margin:4px 0}
a{color:var(--_link);text-underline-offset:2px}
q,blockquote{border-inline-start:3px solid var(--_line)}
blockquote{padding-inline-start:12px;color:var(--_soft)}
hr{border:0;border-top:1px solid var(--_line)}
code{padding:1px 5px;border-radius:5px;font:.87em var(--md-code-font-family,ui-monospace,monospace)}
code,pre,th{background:var(--_shade)}
pre,.scroll{overflow:auto;overflow-wrap:normal}
pre{margin:0;padding:12px 14px;border-radius:10px;line-height:1.5}
pre code{padding:0;background:0 0}
.code{position:relative}
.code button{position:absolute;top:6px;inset-inline-end:6px;padding:2px 9px;border-radius:7px;background:var(--_bg);color:var(--_soft);font-size:12px}
table{border-collapse:collapse;font-size:14px}
th,td{padding:6px 10px;text-align:start}
sup{margin-inline-start:3px;line-height:0}
.cite+*{margin-inline-start:5px}
.cite{padding:1px 5px;border-radius:6px;background:var(--_tint);color:var(--_link);font-size:11px;font-weight:600;text-decoration:none}
.cite:hover{background:var(--_link);color:var(--_bg)}
.status{margin:14px 0 8px;color:var(--_soft);font-size:13px;font-weight:600}
svg{flex:none;width:20px;fill:none;stroke:currentColor;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.error{color:light-dark(#b3261e,#ffb4ab)}
.sources{padding:0;list-style:none}
dialog .chip,.source{display:block;margin:8px 0;padding:7px 12px;border-radius:10px;color:var(--_link);text-decoration:none}
dialog .chip{width:fit-content}
.source:hover{border-color:var(--_link)}
b{color:var(--_fg);font-size:14px}
form{padding:14px;border-top:1px solid var(--_line)}
.quote{padding-bottom:4px}
.field{padding:4px;border-color:var(--_soft);border-radius:14px;align-items:end}
.field:focus-within{border-color:var(--_link)}
textarea{flex:1;max-height:130px;padding:6px 8px;border:0;outline:0!important;resize:none;field-sizing:content;background:0 0;color:inherit;font:inherit;font-size:16px}
::placeholder{color:var(--_soft)}
.field .icon{background:var(--_accent);color:var(--_on)}
.sr{position:absolute;width:1px;overflow:hidden;clip-path:inset(50%)}
[hidden]{display:none}
@keyframes i{from{opacity:0;translate:0 12px}}
@media(max-width:480px){dialog{inset:0!important;width:100%;height:100dvh;border:0;border-radius:0}}
@media(prefers-reduced-motion){*{animation:none!important}}`);
