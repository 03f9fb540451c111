// @ts-check

/** The site's own look: Material's custom properties, stock MkDocs', Docusaurus', VitePress', Furo's, or a default. */
const PALETTE = {
  bg: ['md-default-bg-color bs-body-bg ifm-background-color vp-c-bg color-background-primary', 'light-dark(#fff,#1a1c22)'],
  fg: ['md-default-fg-color bs-body-color ifm-font-color-base vp-c-text-1 color-foreground-primary', 'light-dark(#1d2129,#e4e6ec)'],
  link: ['md-typeset-a-color bs-link-color ifm-link-color vp-c-brand-1 color-brand-content', 'light-dark(#3b49b8,#a3aeff)'],
  code: ['md-code-bg-color bs-tertiary-bg ifm-code-background vp-c-bg-alt color-code-background', 'light-dark(#f4f5f8,#24272f)'],
  font: ['md-text-font-family bs-body-font-family ifm-font-family-base vp-font-family-base font-stack', 'system-ui,sans-serif'],
  mono: ['md-code-font-family bs-font-monospace ifm-font-family-monospace vp-font-family-mono font-stack--monospace', 'ui-monospace,monospace'],
};

const look = Object.entries(PALETTE).map(([name, [themes, own]]) => (
  `--_${name}:${`chapterverse-${name} ${themes}`.split(' ').reduceRight((rest, next) => `var(--${next},${rest})`, own)};`));

export const sheet = new CSSStyleSheet();
sheet.replaceSync(`
:host{${look.join('')}--_soft:color-mix(in srgb,var(--_fg) 72%,var(--_bg));--_line:color-mix(in srgb,var(--_fg) 14%,var(--_bg));
  --_tint:color-mix(in srgb,var(--_link) 11%,var(--_bg))}
dialog{position:fixed;inset:auto;inset-block-end:20px;inset-inline-end:20px;box-sizing:border-box;width:min(430px,100vw - 40px);height:min(700px,100dvh - 40px);
  max-width:none;max-height:none;margin:0;padding:0;overflow:hidden;flex-direction:column;border:1px solid var(--_line);border-radius:16px;
  background:var(--_bg);color:var(--_fg);font:15px/1.6 var(--_font);box-shadow:0 2px 8px #0002,0 16px 48px #0004;outline:0}
dialog[open]{display:flex}
dialog button{all:unset;box-sizing:border-box;cursor:pointer}
dialog :focus-visible,dialog button:focus-visible{outline:2px solid var(--_link);outline-offset:1px}
header{display:flex;align-items:center;gap:4px;padding:10px 10px 10px 18px;border-bottom:1px solid var(--_line)}
h2{flex:1;margin:0;font-size:16px;line-height:36px}
.icon{display:grid;place-items:center;width:36px;height:36px;border-radius:10px;color:var(--_soft)}
.icon:hover{background:var(--_tint);color:var(--_link)}
dialog svg{flex:none;width:20px;height:20px}
.thread{position:relative;flex:1;overflow:auto;overscroll-behavior:contain;padding:18px;scrollbar-width:thin;scrollbar-color:var(--_line) transparent}
.turn{padding-bottom:20px;overflow-wrap:anywhere}
.turn:last-child:not(:first-child){min-height:100%;box-sizing:border-box}
.asked{width:fit-content;max-width:85%;margin:0 0 14px auto;padding:8px 14px;border-radius:16px 16px 4px;background:var(--_tint);white-space:pre-wrap}
.quoted{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:hidden;padding-inline-start:10px;border-inline-start:3px solid var(--_link);color:var(--_soft);font-size:13px}
.draft{color:var(--_soft)}
p,ul,ol,blockquote,.code,.scroll,hr{margin:0 0 12px}
h3,h4,h5,h6{margin:18px 0 8px;font-size:15px}
h3{font-size:17px}
ul,ol{padding-inline-start:24px}
li{margin:4px 0}
li>:last-child{margin:0}
a{color:var(--_link);text-underline-offset:2px}
[data-host]::after{content:" (" attr(data-host) ")";color:var(--_soft);font-size:.85em}
blockquote{padding-inline-start:12px;border-inline-start:3px solid var(--_line);color:var(--_soft)}
hr{border:0;border-top:1px solid var(--_line)}
code{padding:1px 5px;border-radius:5px;background:var(--_code);font:.87em var(--_mono)}
.code{position:relative;border:1px solid var(--_line);border-radius:10px;background:var(--_code)}
pre{margin:0;padding:12px 14px;overflow:auto;border-radius:10px;line-height:1.5}
pre code{padding:0;background:0 0;overflow-wrap:normal}
.copy{position:absolute;inset-block-start:6px;inset-inline-end:6px;padding:2px 9px;border:1px solid var(--_line);border-radius:7px;background:var(--_bg);color:var(--_soft);font-size:12px}
.scroll{overflow:auto}
table{border-collapse:collapse;font-size:14px;overflow-wrap:normal}
th,td{padding:6px 10px;border:1px solid var(--_line);text-align:start}
th{background:var(--_code)}
.end{text-align:end}
sup{line-height:0;vertical-align:baseline}
.cite{display:inline-block;min-width:18px;margin-inline-start:3px;padding:0 4px;box-sizing:border-box;border-radius:6px;background:var(--_tint);color:var(--_link);font:600 11px/18px var(--_font);text-align:center;text-decoration:none;vertical-align:2px}
.cite:hover,.source:hover .cite{background:var(--_link);color:var(--_bg)}
.status{display:flex;align-items:center;gap:6px;margin:16px 0 8px;color:var(--_soft);font-size:13px;font-weight:600}
.status svg{width:17px;height:17px}
.error{color:light-dark(#b3261e,#ffb4ab)}
.sources{padding:0;list-style:none}
.source{display:grid;grid-template-columns:auto 1fr;gap:0 8px;align-items:baseline;padding:7px 10px;border:1px solid var(--_line);border-radius:10px;color:inherit;text-decoration:none}
.source:hover{border-color:var(--_link)}
.source b{font-size:13.5px;font-weight:600}
.snippet{grid-column:2;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden;color:var(--_soft);font-size:13px;line-height:1.45}
.chip{display:block;width:fit-content;margin:8px 0;padding:6px 14px;border:1px solid var(--_line);border-radius:18px;color:var(--_link);font-size:14px}
.chip:hover{border-color:var(--_link);background:var(--_tint)}
.quote{display:flex;gap:6px;align-items:center;margin-bottom:8px}
.quote .quoted{flex:1}
form{padding:12px 14px 8px;border-top:1px solid var(--_line)}
.field{display:flex;align-items:end;gap:6px;padding:4px;border:1px solid color-mix(in srgb,var(--_fg) 45%,var(--_bg));border-radius:14px}
.field:focus-within{border-color:var(--_link);box-shadow:0 0 0 1px var(--_link)}
textarea{flex:1;field-sizing:content;max-height:130px;min-height:36px;box-sizing:border-box;padding:6px 8px;border:0;outline:0;resize:none;background:0 0;color:inherit;font:16px/24px var(--_font)}
.field .icon{background:var(--_accent);color:var(--_on)}
.note{margin:6px 0 0;color:var(--_soft);font-size:12px;text-align:center}
.sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
[hidden]{display:none}
@media(max-width:480px){dialog{inset:0;width:100%;height:100dvh;border:0;border-radius:0}}
@media(prefers-reduced-motion:no-preference){dialog[open]{animation:_in .18s ease-out}.busy{animation:_pulse 1.4s infinite}}
@keyframes _in{from{opacity:0;translate:0 12px}}
@keyframes _pulse{50%{opacity:.5}}`);
