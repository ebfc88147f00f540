/** Colours and layout of the report, for light and dark screens and for print. No rule refers to another file. */
export const styleSheet = `
:root{--page:#fff;--text:#1c2430;--quiet:#5b6675;--line:#d9dee5;--own:#1f5fd0;--baseline:#8a6d1d;--bound:#187a4a;--bad:#c62f2f;--area:#c9d4e3;--panel:#f6f8fa}
@media (prefers-color-scheme:dark){:root{--page:#12161c;--text:#e4e9f0;--quiet:#9aa6b5;--line:#323b47;--own:#77a8ff;--baseline:#d9b44a;--bound:#5bc78c;--bad:#ff7a70;--area:#33445c;--panel:#1a2029}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1180px;padding:16px;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.2rem;margin-top:2.2rem}h3{font-size:1rem;margin:0 0 .4rem}
p{max-width:75ch}.quiet,figcaption{color:var(--quiet);font-size:.875rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .7rem .3rem 0;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-size:.8rem;color:var(--quiet);font-weight:600}
td.text,th.text{text-align:left}td.about{white-space:normal;min-width:14rem;color:var(--quiet);font-size:.875rem;text-align:left}
.own{color:var(--own)}.baseline{color:var(--baseline)}.bound{color:var(--bound)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:16px}
figure{margin:0;padding:12px;background:var(--panel);border:1px solid var(--line);border-radius:6px;min-width:0}
svg{display:block;width:100%;min-width:440px;height:auto}
svg text{fill:var(--quiet);font:13px system-ui,sans-serif}svg .mid{text-anchor:middle}svg .end{text-anchor:end}
svg .grid{stroke:var(--line);fill:none}
svg .area{fill:var(--area);stroke:none}
svg .line{fill:none;stroke:var(--own);stroke-width:1.6}svg .second{stroke:var(--baseline)}
svg .bad{fill:none;stroke:var(--bad);stroke-width:4}
svg .dot-own{fill:var(--own)}svg .dot-baseline{fill:var(--baseline)}svg .dot-bound{fill:var(--bound)}
svg .label{fill:var(--text);font-weight:600}
svg .room{fill:var(--bound)}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em;vertical-align:-.05em}
@media (max-width:540px){svg{min-width:0}svg text{font-size:17px}svg .odd{display:none}td.about{min-width:18rem}}
@media print{figure{break-inside:avoid}}
`;
